#!/usr/bin/env bash
# What action.yml runs: PT2_FILES (paths and patterns, one per line) -> `pt2 check` of all of them, SARIF in PT2_SARIF.
# Exit status as that of `pt2 check`; 2 where nothing matches.
set -uo pipefail
shopt -s globstar nullglob
files=()
while IFS= read -r line; do
  line="${line#"${line%%[![:space:]]*}"}"
  line="${line%"${line##*[![:space:]]}"}"
  [ -z "$line" ] && continue
  if [ -e "$line" ]; then
    [ -d "$line" ] && files+=("${line%/}"/**/*.pt2) || files+=("$line")
  else
    # Unquoted, so that the pattern is expanded; IFS is empty, so that blanks stay in names.
    IFS=; matches=($line); unset IFS
    files+=(${matches[@]+"${matches[@]}"})
  fi
done <<< "${PT2_FILES:-}"
if [ "${#files[@]}" -eq 0 ]; then
  echo "pt2 check: expected files that match '${PT2_FILES:-}', got none" >&2
  exit 2
fi
read -r -a more <<< "${PT2_ARGS:-}"
pt2 check --sarif ${more[@]+"${more[@]}"} -- "${files[@]}" > "$PT2_SARIF"
code=$?
# The findings in the log as well.
pt2 check ${more[@]+"${more[@]}"} -- "${files[@]}"
exit "$code"
