package app

import (
	"os"
	"testing"
)

// TestMain also runs the sealed process: the test binary starts itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "sandbox" {
		os.Exit(Child(os.Args[2:]))
	}

	os.Exit(m.Run())
}
