"""Each layer (a folder of src/ that holds code) and kernels/ has a short README that says what lives there."""

import sys

import lint

LONGEST = 40


def check(tree):
    root = lint.pathlib.Path(tree)
    found = []
    folders = [folder for folder in sorted((root / "src").iterdir()) if folder.is_dir() and lint.files(folder, ("",))]
    for folder in folders + [root / "kernels"]:
        path = folder / "README.md"
        name = lint.name(tree, folder)
        if not path.is_file() or len(lint.lines(path)) < 3:
            found.append(f"{name}/README.md:1: missing or empty: say what lives here and who may include it")
        elif name != "src/graph" and len(lint.lines(path)) > LONGEST:
            found.append(f"{name}/README.md:1: {len(lint.lines(path))} lines; ten are enough, {LONGEST} the limit")
    return found


CLEAN = {
    "kernels/README.md": "# kernels\n\nCUDA.\n",
    "src/core/README.md": "# core\n\nThe lowest layer.\n",
    "src/core/a.h": "\n",
}
PLANTED = [
    ({"src/exec/a.h": "\n"}, ["src/exec/README.md", "missing"]),
    ({"src/core/README.md": "\n"}, ["src/core/README.md", "empty"]),
    ({"src/core/README.md": "a\n" * 50}, ["50 lines"]),
]

if __name__ == "__main__":
    sys.exit(lint.main(check, PLANTED, CLEAN))
