#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The workflow files of docs/ci: against the schemas of GitHub and GitLab where check-jsonschema is
# installed (from PyPI; Debian has none), else as YAML with the parts that each must have, and it
# says which. Every script that they call must be there. Usage: workflows.sh SOURCE_DIR

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
if command -v check-jsonschema >/dev/null; then
    check-jsonschema --builtin-schema vendor.github-workflows docs/ci/github.yml || wrong "github.yml"
    check-jsonschema --builtin-schema vendor.gitlab-ci docs/ci/gitlab.yml || wrong "gitlab.yml"
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
