"""What the lint scripts share: their command line, reading the tree, and the self-check with planted violations.

A lint script defines check(tree) -> list of "path:line: message" and PLANTED: a list of (files, words), where files maps
a path to a text and words are what the finding about it must contain. `script.py TREE` checks the tree;
`script.py --self-check` makes a small tree of each planted entry and fails when the violation is not found there, or when
something is found in CLEAN, a tree without one.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

CODE_FOLDERS = ("include", "src", "kernels", "tests", "examples", "benchmarks")
CODE_SUFFIXES = (".h", ".cpp", ".cu", ".cuh")


def files(tree, folders=CODE_FOLDERS, suffixes=CODE_SUFFIXES):
    """Paths below these folders, sorted; suffixes None: every file."""
    found = []
    for folder in folders:
        for root, names, leaves in os.walk(pathlib.Path(tree) / folder):
            names[:] = [name for name in names if not name.startswith(".") and name != "__pycache__"]
            found += [pathlib.Path(root) / leaf for leaf in leaves if suffixes is None or leaf.endswith(suffixes)]
    return sorted(found)


def name(tree, path):
    return pathlib.Path(path).relative_to(tree).as_posix()


def lines(path):
    return pathlib.Path(path).read_text(encoding="utf-8").splitlines()


def run(command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)


def write(tree, texts):
    for path, text in texts.items():
        target = pathlib.Path(tree) / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")


def self_check(check, planted, clean):
    failures = []
    for texts, words in planted:
        with tempfile.TemporaryDirectory() as folder:
            write(folder, clean)
            write(folder, texts)
            found = check(folder)
        if not any(all(word in finding for word in words) for finding in found):
            failures.append(f"planted in {', '.join(texts)}: no finding with {words}; found: {found}")
    with tempfile.TemporaryDirectory() as folder:
        write(folder, clean)
        failures += [f"found in a clean tree: {finding}" for finding in check(folder)]
    return failures


def main(check, planted, clean, arguments=None):
    arguments = sys.argv[1:] if arguments is None else arguments
    found = self_check(check, planted, clean) if arguments[0] == "--self-check" else check(arguments[0])
    for finding in found:
        print(finding)
    print(f"{len(found)} found")
    return 1 if found else 0
