// Package chance is the tests that the runner's own tests run.
package chance

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSteady(*testing.T) {}

// TestChance fails the first time in a folder.
func TestChance(t *testing.T) {
	t.Run("part", func(t *testing.T) {
		seen := filepath.Join(os.Getenv("CHANCE_DIR"), "seen")
		if _, err := os.Stat(seen); err != nil {
			_ = os.WriteFile(seen, nil, 0o600)

			t.Fatal("this is the first time")
		}
	})
}

func TestBroken(t *testing.T) { t.Error("this is always wrong") }

func TestSkipped(t *testing.T) { t.Skip("this tests nothing") }

func TestCrash(*testing.T) { os.Exit(3) }

func TestSerial(t *testing.T) { //nolint:paralleltest // the runner finds this comment
	t.Log("alone")
}
