using Json = nlohmann::ordered_json;

/// Free keys in the order of the file.
template <class T>
using Dict = std::vector<std::pair<std::string, T>>;

/// Text in base64.
using Base64 = std::string;

/// An empty array.
using EmptyTuple = std::tuple<>;

/// Says where in the JSON something is wrong, what was expected and what is there.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// An integer. JSON sets no limit: where 64 bits do not hold it, `digits` has it in decimal and `value` is 0.
struct Int {
  std::int64_t value = 0;
  std::string digits;

  Int() = default;
  Int(std::int64_t number) : value(number) {}

  /// Throws Error where 64 bits do not hold it.
  operator std::int64_t() const {
    if (!digits.empty()) throw Error("expected an integer of at most 64 bits, got " + digits.substr(0, 60));
    return value;
  }
};

/// Levels of nesting that are read. A program needs about 12, and 9 more for each level of nested subgraphs.
inline constexpr std::size_t max_depth = 512;

/// A place in the JSON: a chain of keys and indices on the stack.
struct Place {
  const Place* up = nullptr;
  std::string_view key;
  std::size_t index = 0;
  std::size_t depth = 0;

  Place at(std::string_view name) const { return {this, name, 0, depth + 1}; }
  Place at(std::size_t position) const { return {this, {}, position, depth + 1}; }

  std::string text() const {
    if (up == nullptr) return "$";
    const std::string head = up->text();
    return key.data() == nullptr ? head + "[" + std::to_string(index) + "]" : head + "." + std::string(key);
  }
};

[[noreturn]] inline void refuse(const Place& place, const std::string& expected, const std::string& got) {
  throw Error(place.text() + ": expected " + expected + ", got " + got);
}

[[noreturn]] inline void refuse_value(const Place& place, const std::string& expected, const Json& got) {
  const auto replace = Json::error_handler_t::replace;
  if (got.is_structured()) refuse(place, expected, got.type_name());
  const std::string digits = got.is_binary() ? std::string(got.get_binary().begin(), got.get_binary().end()) : "";
  refuse(place, expected, (got.is_binary() ? digits : got.dump(-1, ' ', false, replace)).substr(0, 60));
}

/// Builds JSON from text. An integer beyond 64 bits, which Json has no number for, is a binary value of its digits.
class Builder : public nlohmann::json_sax<Json> {
 public:
  Json root;

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool string(string_t& value) override { return add(value); }
  bool binary(binary_t& value) override { return add(value); }
  bool number_float(number_float_t value, const string_t& text) override {
    if (text.find_first_of(".eE") != string_t::npos) return add(value);
    return add(Json::binary({text.begin(), text.end()}));
  }
  bool start_object(std::size_t) override {
    keys_.emplace_back();
    return enter(Json::object());
  }
  bool key(string_t& name) override {
    if (!keys_.back().insert(name).second) throw Error("expected each key once, got \"" + name + "\" twice");
    name_ = name;
    return true;
  }
  bool end_object() override {
    keys_.pop_back();
    open_.pop_back();
    return true;
  }
  bool start_array(std::size_t) override { return enter(Json::array()); }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
    throw Error(std::string("expected JSON, got ") + error.what());
  }

 private:
  Json& put(Json&& value) {
    if (open_.empty()) return root = std::move(value);
    Json& holder = *open_.back();
    if (holder.is_array()) return holder.emplace_back(std::move(value));
    return holder.emplace(name_, std::move(value)).first.value();
  }
  bool add(Json value) {
    put(std::move(value));
    return true;
  }
  bool enter(Json&& value) {
    if (open_.size() == max_depth) throw Error("expected at most " + std::to_string(max_depth) + " levels of nesting, got more");
    // Nothing is added beside it while it is open, so it stays where it is.
    open_.push_back(&put(std::move(value)));
    return true;
  }

  std::vector<Json*> open_;
  std::vector<std::set<std::string>> keys_;
  std::string name_;
};

/// Text to JSON, strictly: no key twice in one object, no more than `max_depth` levels. Throws Error.
inline Json parse(std::string_view text) {
  Builder builder;
  Json::sax_parse(text.begin(), text.end(), &builder);
  return std::move(builder.root);
}

/// JSON to text, where integers beyond 64 bits are binary values of their digits.
inline void append_text(const Json& json, std::string& out) {
  const char* separator = "";
  if (json.is_object()) {
    out += '{';
    for (const auto& [key, value] : json.items()) {
      out += separator + Json(key).dump() + ":";
      append_text(value, out);
      separator = ",";
    }
    out += '}';
  } else if (json.is_array()) {
    out += '[';
    for (const auto& value : json) {
      out += separator;
      append_text(value, out);
      separator = ",";
    }
    out += ']';
  } else if (json.is_binary()) {
    out.append(json.get_binary().begin(), json.get_binary().end());
  } else {
    out += json.dump();
  }
}

inline bool has_digits(const Json& json) {
  return json.is_binary() || (json.is_structured() && std::any_of(json.begin(), json.end(), has_digits));
}

inline void read(const Json& json, bool& out, const Place& place) {
  if (!json.is_boolean()) refuse_value(place, "true or false", json);
  out = json.get<bool>();
}

inline void read(const Json& json, Int& out, const Place& place) {
  out = Int();
  if (json.is_binary()) out.digits.assign(json.get_binary().begin(), json.get_binary().end());
  else if (json.is_number_unsigned() && json.get<std::uint64_t>() > std::uint64_t{INT64_MAX}) out.digits = json.dump();
  else if (json.is_number_integer()) out.value = json.get<std::int64_t>();
  else refuse_value(place, "an integer", json);
}

inline void read(const Json& json, double& out, const Place& place) {
  if (json.is_number()) out = json.get<double>();
  else if (json.is_binary()) out = std::stod(std::string(json.get_binary().begin(), json.get_binary().end()));
  else if (json == "Infinity") out = std::numeric_limits<double>::infinity();
  else if (json == "-Infinity") out = -std::numeric_limits<double>::infinity();
  else if (json == "NaN") out = std::numeric_limits<double>::quiet_NaN();
  else refuse_value(place, "a number, \"Infinity\", \"-Infinity\" or \"NaN\"", json);
}

inline void read(const Json& json, std::string& out, const Place& place) {
  if (!json.is_string()) refuse_value(place, "a string", json);
  out = json.get<std::string>();
}

inline void write(bool in, Json& json) { json = in; }
inline void write(const Int& in, Json& json) {
  if (in.digits.empty()) json = in.value;
  else json = Json::binary({in.digits.begin(), in.digits.end()});
}
inline void write(const std::string& in, Json& json) { json = in; }
inline void write(double in, Json& json) {
  if (std::isnan(in)) json = "NaN";
  else if (std::isinf(in)) json = in > 0 ? "Infinity" : "-Infinity";
  else json = in;
}

// Declared before any is defined: they call each other.
template <class T> void read(const Json&, std::optional<T>&, const Place&);
template <class T> void read(const Json&, std::vector<T>&, const Place&);
template <class T> void read(const Json&, Dict<T>&, const Place&);
template <class... T> void read(const Json&, std::tuple<T...>&, const Place&);
template <class... T> void read(const Json&, std::variant<T...>&, const Place&);
template <class T> void write(const std::optional<T>&, Json&);
template <class T> void write(const std::vector<T>&, Json&);
template <class T> void write(const Dict<T>&, Json&);
template <class... T> void write(const std::tuple<T...>&, Json&);
template <class... T> void write(const std::variant<T...>&, Json&);

template <class T>
void read(const Json& json, std::optional<T>& out, const Place& place) {
  if (json.is_null()) out.reset();
  else read(json, out.emplace(), place);
}

template <class T>
void read(const Json& json, std::vector<T>& out, const Place& place) {
  if (!json.is_array()) refuse_value(place, "an array", json);
  out.clear();
  out.reserve(json.size());
  for (std::size_t i = 0; i < json.size(); ++i) {
    T item{};
    read(json[i], item, place.at(i));
    out.push_back(std::move(item));
  }
}

template <class T>
void read(const Json& json, Dict<T>& out, const Place& place) {
  if (!json.is_object()) refuse_value(place, "an object", json);
  out.clear();
  out.reserve(json.size());
  for (const auto& [key, value] : json.items()) {
    out.emplace_back(key, T{});
    read(value, out.back().second, place.at(key));
  }
}

template <class... T>
void read(const Json& json, std::tuple<T...>& out, const Place& place) {
  if (!json.is_array() || json.size() != sizeof...(T)) refuse_value(place, "an array of " + std::to_string(sizeof...(T)), json);
  [[maybe_unused]] std::size_t i = 0;
  std::apply([&](T&... items) { (..., (read(json[i], items, place.at(i)), ++i)); }, out);
}

/// A value of one of several types: the first that fits.
template <class... T>
void read(const Json& json, std::variant<T...>& out, const Place& place) {
  const auto fits = [&](auto&& candidate) {
    try {
      read(json, candidate, place);
    } catch (const Error&) {
      return false;
    }
    out = std::move(candidate);
    return true;
  };
  if (!(... || fits(T{}))) refuse_value(place, "a value of one of " + std::to_string(sizeof...(T)) + " types", json);
}

template <class T>
void write(const std::optional<T>& in, Json& json) {
  if (in) write(*in, json);
  else json = nullptr;
}

template <class T>
void write(const std::vector<T>& in, Json& json) {
  json = Json::array();
  for (const auto& item : in) {
    json.emplace_back();
    write(item, json.back());
  }
}

template <class T>
void write(const Dict<T>& in, Json& json) {
  json = Json::object();
  for (const auto& [key, value] : in) write(value, json[key]);
}

template <class... T>
void write(const std::tuple<T...>& in, Json& json) {
  json = Json::array();
  [[maybe_unused]] const auto add = [&json](const auto& item) {
    json.emplace_back();
    write(item, json.back());
  };
  std::apply([&](const T&... items) { (..., add(items)); }, in);
}

template <class... T>
void write(const std::variant<T...>& in, Json& json) {
  std::visit([&json](const auto& value) { write(value, json); }, in);
}

/// Reads the known keys of an object one by one, then gives what is left.
class Object {
 public:
  Object(const Json& json, const Place& place) : json_(json), place_(place) {
    if (!json.is_object()) refuse_value(place, "an object", json);
    if (place.depth > max_depth) refuse(place, "at most " + std::to_string(max_depth) + " levels", "more");
  }

  template <class T>
  void required(const char* key, T& out) {
    if (!optional(key, out)) refuse(place_, std::string("the key ") + key, "none");
  }

  template <class T>
  bool optional(const char* key, T& out) {
    const auto found = json_.find(key);
    if (found == json_.end()) return false;
    read(*found, out, place_.at(std::string_view(key)));
    known_.push_back(key);
    return true;
  }

  /// The keys that this version does not know; null where there are none.
  Json rest() const {
    Json found;
    if (known_.size() == json_.size()) return found;
    for (const auto& [key, value] : json_.items())
      if (std::find(known_.begin(), known_.end(), key) == known_.end()) found[key] = value;
    return found;
  }

 private:
  const Json& json_;
  const Place& place_;
  std::vector<std::string_view> known_;
};

inline void write_rest(const Json& unknown, Json& json) {
  for (const auto& [key, value] : unknown.items()) json[key] = value;
}

template <std::size_t I = 0, class... T>
void read_arm(std::size_t arm, const Json& json, std::variant<T...>& out, const Place& place) {
  if constexpr (I < sizeof...(T)) {
    if (arm == I) read(json, out.template emplace<I>(), place);
    else read_arm<I + 1>(arm, json, out, place);
  }
}

/// Reads an object that holds exactly one of the keys `arms`; or all of them, null except for one.
template <class... T>
void read_union(const Json& json, const std::array<const char*, sizeof...(T)>& arms, std::variant<T...>& out, const Place& place) {
  if (!json.is_object()) refuse_value(place, "an object with one key", json);
  std::size_t set = 0;
  for (const auto& [key, value] : json.items()) {
    if (null_unions && value.is_null()) continue;
    const auto arm = std::find(arms.begin(), arms.end(), key);
    if (arm == arms.end()) refuse(place, "a key that this version knows", key);
    if (++set == 1) read_arm(static_cast<std::size_t>(arm - arms.begin()), value, out, place.at(std::string_view(*arm)));
  }
  if (set != 1) refuse(place, "exactly one key", std::to_string(set));
}

template <class... T>
void write_union(const std::array<const char*, sizeof...(T)>& arms, const std::variant<T...>& in, Json& json) {
  json = Json::object();
  if (null_unions)
    for (const char* arm : arms) json[arm] = nullptr;
  std::visit([&](const auto& value) { write(value, json[arms[in.index()]]); }, in);
}

/// JSON to a type of the schema. Throws Error with the place of the first misfit.
template <class T>
T decode(const Json& json) {
  T out{};
  read(json, out, Place{});
  return out;
}

/// JSON text to a type of the schema. Throws Error.
template <class T>
T decode_text(std::string_view text) {
  return decode<T>(parse(text));
}

/// A type of the schema to JSON. Throws Error for an integer beyond 64 bits, which only `encode_text` can write.
template <class T>
Json encode(const T& value) {
  Json json;
  write(value, json);
  if (has_digits(json)) throw Error("expected integers of at most 64 bits, got a larger one; use encode_text");
  return json;
}

/// A type of the schema to compact JSON text. Throws Error for text that is not UTF-8.
template <class T>
std::string encode_text(const T& value) {
  Json json;
  write(value, json);
  std::string text;
  try {
    append_text(json, text);
  } catch (const Json::exception& error) {
    throw Error(std::string("expected UTF-8, got ") + error.what());
  }
  return text;
}
