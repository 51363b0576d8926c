// Package stack finds the servers that `make stack` started, and builds the programs to run against them. Only tests, bench and development use it.
package stack

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// TB is the part of testing.TB that Env needs, so that programs can use this package without importing testing.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Dir returns the folder with the stack's env file, data and logs: QUERN_STACK_DIR, or quern/stack in the user's cache.
func Dir() string {
	if dir := os.Getenv("QUERN_STACK_DIR"); dir != "" {
		return dir
	}
	// Without a cache folder the path is relative, and Lookup reports that the file is missing.
	cache, _ := os.UserCacheDir()

	return filepath.Join(cache, "quern", "stack")
}

// Env is Lookup for tests: it ends the test if the setting is missing.
func Env(tb TB, key string) string {
	tb.Helper()
	value, err := Lookup(key)
	if err != nil {
		tb.Fatalf("%v", err)
	}

	return value
}

// Lookup returns a setting of the stack, from the process environment or else from the stack's env file.
func Lookup(key string) (string, error) {
	if value := os.Getenv(key); value != "" {
		return value, nil
	}
	file := filepath.Join(Dir(), "env")
	content, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("%s: %s does not exist: run `make stack`", key, file)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", key, err)
	}
	for line := range strings.Lines(string(content)) {
		if value, found := strings.CutPrefix(strings.TrimSpace(line), key+"="); found {
			return value, nil
		}
	}

	return "", fmt.Errorf("%s: not in %s: run `make stack`", key, file)
}
