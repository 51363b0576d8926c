//go:build conformance

package a2a

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// kitErrs returns the requirements whose test expects the opposite of the requirement (a2a-tck#202), with the response that
// the test reports as a failure. Both requirements demand an error without naming it, so the kit expects a success.
func kitErrs() map[string]string {
	return map[string]string{
		"CORE-SEND-003":   "Operation failed: This agent accepts only text.",
		"CORE-MULTI-002a": "Operation failed: The parameters are not valid: message.contextId is not one of your contexts; omit it to start a new one.",
	}
}

// TestConformance runs the official conformance kit against the transport and the log, with an agent that behaves as the
// kit requires. TCK_DIR is the folder of the kit, with its dependencies installed in venv.
func TestConformance(t *testing.T) { //nolint:paralleltest // alone in its run
	dir := os.Getenv("TCK_DIR")
	require.NotEmpty(t, dir, "TCK_DIR is the folder of the kit")

	file := filepath.Join(dir, "reports", "compatibility.json")
	_ = os.Remove(file) // an old report must not be mistaken for the new one

	kit := exec.CommandContext(t.Context(), filepath.Join(dir, "venv", "bin", "python"), "run_tck.py", "--sut-host", newCanned(t), "--transport", "jsonrpc")
	kit.Dir = dir
	output, _ := kit.CombinedOutput() // it also fails for the requirements of kitErrs

	text, err := os.ReadFile(file)
	require.NoError(t, err, "%s", output)

	var report struct {
		Requirements map[string]struct {
			Level, Status string
			Errors        []string
		} `json:"per_requirement"`
	}
	require.NoError(t, json.Unmarshal(text, &report))

	count := map[string]int{}

	for _, name := range slices.Sorted(maps.Keys(report.Requirements)) {
		one := report.Requirements[name]
		count[one.Level+" "+one.Status]++

		switch answer, errs := kitErrs()[name]; {
		case errs && one.Status != "PASS":
			require.Equal(t, []string{answer}, one.Errors, name)
		case one.Status == "FAIL" && one.Level == "MUST":
			t.Errorf("%s: %v", name, one.Errors)
		case one.Status == "FAIL":
			t.Logf("%s (%s): %v", name, one.Level, one.Errors)
		}
	}

	require.Greater(t, count["MUST PASS"], 60, "%s", output)

	for _, name := range slices.Sorted(maps.Keys(count)) {
		t.Log(name, count[name])
	}
}
