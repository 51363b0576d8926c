"""Makes src/quern/_wire.py, the types of the API, from api/openapi.yaml. With --check it only compares and fails on a difference."""

import subprocess
import sys
import tempfile
from pathlib import Path

CLIENT = Path(__file__).parent.parent
TARGET = CLIENT / "src" / "quern" / "_wire.py"
CONTRACT = CLIENT.parent.parent / "api" / "openapi.yaml"


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "_wire.py")
        options = ["--input-file-type=openapi", "--output-model-type=typing.TypedDict", "--target-python-version=3.11"]
        options += ["--disable-timestamp", "--use-schema-description", "--strict-nullable"]
        options += ["--enum-field-as-literal=all", "--formatters=builtin"]
        subprocess.run(["datamodel-codegen", f"--input={CONTRACT}", f"--output={made}", *options], check=True)
        text = made.read_text()
    if TARGET.exists() and TARGET.read_text() == text:
        return 0
    if "--check" in sys.argv:
        print(f"{TARGET} is stale: run tools/wire.py", file=sys.stderr)
        return 1
    TARGET.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
