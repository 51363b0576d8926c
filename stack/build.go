package stack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// Build builds quernd with these flags of `go build`, and quern-engine beside it, into a folder. It returns the path of quernd.
func Build(ctx context.Context, folder string, flags ...string) (quernd string, err error) {
	quernd = filepath.Join(folder, "quernd")

	arguments := slices.Concat([]string{"build", "-trimpath", "-o", quernd}, flags, []string{"quern.dev/quern/cmd/quernd"})
	server := exec.CommandContext(ctx, "go", arguments...) //nolint:gosec // the flags of a test
	server.Env = os.Environ()

	if !slices.Contains(flags, "-race") { // the race detector is C
		server.Env = append(server.Env, "CGO_ENABLED=0")
	}

	engine := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", filepath.Join(folder, "quern-engine"), "quern.dev/quern/cmd/quern-engine") //nolint:gosec // the folder of a test

	for _, build := range []*exec.Cmd{server, engine} {
		if out, err := build.CombinedOutput(); err != nil {
			return "", fmt.Errorf("building %s: %w\n%s", build.Args[len(build.Args)-1], err, out)
		}
	}

	return quernd, nil
}
