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
	if err := BuildServer(ctx, quernd, flags...); err != nil {
		return "", err
	}

	return quernd, build(ctx, filepath.Join(folder, "quern-engine"), os.Environ(), nil)
}

// BuildServer builds only quernd, for a caller that has a quern-engine.
func BuildServer(ctx context.Context, path string, flags ...string) error {
	env := os.Environ()
	if !slices.Contains(flags, "-race") { // the race detector is C
		env = append(env, "CGO_ENABLED=0")
	}

	return build(ctx, path, env, flags)
}

// build builds the program with the name of the file.
func build(ctx context.Context, path string, env, flags []string) error {
	arguments := slices.Concat([]string{"build", "-trimpath", "-o", path}, flags, []string{"quern.dev/quern/cmd/" + filepath.Base(path)})
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Env = env

	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", filepath.Base(path), err, out)
	}

	return nil
}
