#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The workflow files of docs/ci: against the schemas of GitHub and GitLab by check-jsonschema, which
# ci/python_tools.sh puts under build/tools/python (or PATH has); without it as YAML with the parts
# that each must have, and it says which. Every script that they call must be there.
# Usage: workflows.sh SOURCE_DIR

set -uo pipefail
source=$(realpath "${1:?usage: workflows.sh SOURCE_DIR}")
cd "$source" || exit 1
failed=0
wrong() {
    echo "workflows.sh: $*" >&2
    failed=1
}
while read -r script; do
    [ -x "$script" ] || wrong "$script is called, and not there"
done < <(grep -hoE '\bci/[a-z_]+\.sh' docs/ci/*.yml | sort -u)
PATH=$source/build/tools/python/bin:$PATH
if command -v check-jsonschema >/dev/null; then
    tmp=$(mktemp -d)
    trap 'rm -rf "$tmp"' EXIT
    # follows SERVICE SCHEMA LINE: the file does, and one whose LINE is misspelt does not.
    follows() {
        check-jsonschema --builtin-schema "$2" "docs/ci/$1.yml" || wrong "$1.yml"
        sed "s/^\( *\)$3:/\1$3s:/" "docs/ci/$1.yml" >"$tmp/$1.yml"
        ! check-jsonschema --builtin-schema "$2" "$tmp/$1.yml" >"$tmp/said" || wrong "$1.yml with '${3}s:' is taken"
        grep -qE "$3" "$tmp/said" || wrong "$1.yml with '${3}s:': $(cat "$tmp/said")"
    }
    follows github vendor.github-workflows runs-on
    follows gitlab vendor.gitlab-ci script
    exit "$failed"
fi
echo "workflows.sh: check-jsonschema is not installed: parsed as YAML, without the schemas" >&2
/usr/bin/python3 - <<'EOF' || wrong "not what the services take"
import sys
try:
    import yaml
except ImportError:
    print("workflows.sh: skipped: python3-yaml is not installed either", file=sys.stderr)
    sys.exit(0)
github = yaml.safe_load(open("docs/ci/github.yml"))
assert set(github) == {"name", True, "permissions", "concurrency", "jobs"}, list(github)  # `on` is true in YAML 1.1
for job in github["jobs"].values():
    assert job["runs-on"] and job["steps"], job
    for step in job["steps"]:
        assert ("uses" in step) != ("run" in step), step
        assert set(step) <= {"name", "uses", "run", "with", "if"}, step
gitlab = yaml.safe_load(open("docs/ci/gitlab.yml"))
for name, job in gitlab.items():
    if name not in ("stages", "default"):
        assert job["stage"] in gitlab["stages"] and all(isinstance(line, str) for line in job["script"]), job
EOF
exit "$failed"
