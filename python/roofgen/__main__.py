"""`python -m roofgen ARGUMENTS`: the program roofgen of the wheel."""
import os
import sys
from pathlib import Path


def main() -> None:
    program = os.environ.get("ROOFGEN_PROGRAM") or str(Path(__file__).parent / "bin" / "roofgen")
    try:
        os.execv(program, ["roofgen", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"roofgen: {program}: {error.strerror}; ROOFGEN_PROGRAM=FILE names another one")


if __name__ == "__main__":
    main()
