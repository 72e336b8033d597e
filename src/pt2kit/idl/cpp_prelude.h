using Json = nlohmann::ordered_json;

/// Free keys in the order of the file.
template <class T>
using Dict = std::vector<std::pair<std::string, T>>;

/// Text in base64.
using Base64 = std::string;

/// An empty array.
using EmptyTuple = std::tuple<>;

/// Levels of nesting that are read. A program needs about 12, and 9 more for each level of nested subgraphs.
inline constexpr int max_depth = 512;

/// Says where in the JSON something is wrong, what was expected and what is there.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A place in the JSON: a chain of keys and indices on the stack.
struct Place {
  const Place* up = nullptr;
  std::string_view key;
  std::size_t index = 0;
  int depth = 0;

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
  refuse(place, expected, got.is_structured() ? got.type_name() : got.dump(-1, ' ', false, replace).substr(0, 60));
}

/// Text to JSON, strictly: no key twice in one object, no more than `max_depth` levels. Throws Error.
inline Json parse(std::string_view text) {
  std::vector<std::set<std::string>> open;
  const auto watch = [&open](int depth, Json::parse_event_t event, Json& parsed) {
    using Event = Json::parse_event_t;
    if (depth > max_depth) throw Error("expected at most " + std::to_string(max_depth) + " levels of nesting, got more");
    if (event == Event::object_start) open.emplace_back();
    if (event == Event::object_end) open.pop_back();
    if (event == Event::key && !open.back().insert(parsed.get<std::string>()).second)
      throw Error("expected each key once, got " + parsed.dump() + " twice");
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), watch);
  } catch (const Json::exception& error) {
    throw Error(std::string("expected JSON, got ") + error.what());
  }
}

inline void read(const Json& json, bool& out, const Place& place) {
  if (!json.is_boolean()) refuse_value(place, "true or false", json);
  out = json.get<bool>();
}

inline void read(const Json& json, std::int64_t& out, const Place& place) {
  const bool too_large = json.is_number_unsigned() && json.get<std::uint64_t>() > std::uint64_t{INT64_MAX};
  // The parser turns integers beyond 64 bits into floats.
  if (!json.is_number_integer() || too_large) refuse_value(place, "an integer of at most 64 bits", json);
  out = json.get<std::int64_t>();
}

inline void read(const Json& json, double& out, const Place& place) {
  if (json.is_number()) out = json.get<double>();
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
inline void write(std::int64_t in, Json& json) { json = in; }
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

/// A type of the schema to JSON; `.dump()` gives the text.
template <class T>
Json encode(const T& value) {
  Json json;
  write(value, json);
  return json;
}
