package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/google/uuid"
)

// bill writes the list of the modules in a program. The tool reads the list from the program
// itself, so the list contains exactly what the linker included.
func bill(ctx context.Context, tool, binary, path, version string) error {
	content, err := os.ReadFile(binary)
	if err != nil {
		return err
	}

	// No time, and a number from the bytes of the program: the same program has the same list. No licences: the tool would
	// guess them from the files of the modules, and wrongly for some.
	write := exec.CommandContext(ctx, tool, "bin", "-json", "-output-version", "1.6", "-std", "-notimestamp", //nolint:gosec // built here, for a program that was built here
		"-serial", uuid.NewSHA1(uuid.NameSpaceURL, content).String(), "-version", version, "-output", path, binary)

	if out, err := write.CombinedOutput(); err != nil {
		return fmt.Errorf("writing the list of the modules: %w\n%s", err, out)
	}

	return nil
}

// buildBillTool builds the tool into a folder and returns its path. The lists contain a checksum of the tool, so it is
// built without any path of this machine.
func buildBillTool(ctx context.Context, folder string) (string, error) {
	path := filepath.Join(folder, "cyclonedx-gomod")

	build := exec.CommandContext(ctx, "go", "build", "-C", "release/tool", "-trimpath", "-o", path, "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod")
	build.Env = append(os.Environ(), "GOFLAGS=", "CGO_ENABLED=0")

	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building cyclonedx-gomod: %w\n%s", err, out)
	}

	return path, nil
}
