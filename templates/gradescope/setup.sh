#!/usr/bin/env bash
# For a programming assignment of Gradescope: installs the course for a user who is not root. Replace ACCOUNT/COURSE by the
# course's repository and TAG by a tag, a branch or the whole hash of a commit of it. A zip of this file, run_autograder
# and bundle/, as course release wrote it, is the assignment's autograder.
set -euo pipefail
apt-get update -qq
apt-get install -y -qq --no-install-recommends git python3-venv bubblewrap
useradd --create-home --home-dir /opt/grader grader
cp -r /autograder/source/bundle /opt/grader/bundle
git init --quiet /opt/grader/course
cd /opt/grader/course
git fetch --quiet --depth 1 https://github.com/ACCOUNT/COURSE TAG
git checkout --quiet FETCH_HEAD
python3 -m venv /opt/uv
/opt/uv/bin/pip install --quiet uv
# Gradescope's own Python may be too old. Root's home is closed to the grader.
export UV_PYTHON_INSTALL_DIR=/opt/python
/opt/uv/bin/uv venv --quiet --python 3.12 .venv
/opt/uv/bin/uv pip install --quiet --python .venv/bin/python --torch-backend cpu -r requirements.lock
/opt/uv/bin/uv pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation -e .
chown -R grader: /opt/grader
