// Package stack finds the real servers that `make stack` started. Only tests, bench and development use it.
package stack

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// TB is what Env needs of a test, so that programs can use this package without importing testing.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Dir is where the stack keeps its env file, data and logs: QUERN_STACK_DIR, or quern/stack in the user's cache.
func Dir() string {
	if dir := os.Getenv("QUERN_STACK_DIR"); dir != "" {
		return dir
	}
	// Without a cache folder the path is relative and Lookup tells that the file is missing.
	cache, _ := os.UserCacheDir()

	return filepath.Join(cache, "quern", "stack")
}

// Env is Lookup for tests: what is missing ends the test.
func Env(tb TB, key string) string {
	tb.Helper()
	value, err := Lookup(key)
	if err != nil {
		tb.Fatalf("%v", err)
	}

	return value
}

// Lookup gives a setting of the stack, from the process environment or else from the stack's env file.
func Lookup(key string) (string, error) {
	if value := os.Getenv(key); value != "" {
		return value, nil
	}
	file := filepath.Join(Dir(), "env")
	content, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("%s: there is no %s: run `make stack`", key, file)
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
