package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRunAll(t *testing.T) {
	for name, test := range map[string]struct {
		run      string
		fails    bool
		contains []string
	}{
		"all pass": {run: "^TestSteady$", contains: []string{"pass ", "e2e: 1 tests in ", "0 flaky", "1 passed, 0 failed"}},
		"a test that passes the second time is flaky": {
			run: "^Test(Steady|Chance)$", contains: []string{"again, alone: TestChance", "this is the first time", "flaky: TestChance ", "2 passed, 0 failed"},
		},
		"a test that fails twice is red": {
			run: "^Test(Steady|Broken)$", fails: true, contains: []string{"again, alone: TestBroken", "this is always wrong", "FAIL: TestBroken", "1 passed, 1 failed"},
		},
		"a serial test follows the others": {run: "^Test(Steady|Serial)$", contains: []string{"TestSerial\n", "2 passed, 0 failed"}},
		"a test that skips tests nothing":  {run: "^TestSkipped$", fails: true, contains: []string{"FAIL: TestSkipped", "0 passed, 1 failed"}},
		"a test that ends the process":     {run: "^TestCrash$", fails: true, contains: []string{"FAIL: TestCrash", "0 passed, 1 failed"}},
		"a pattern without a test":         {run: "^TestNothing$", fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("CHANCE_DIR", t.TempDir())

			var out bytes.Buffer

			err := runAll(t.Context(), options{dir: "testdata/chance", run: test.run, parallel: 2, timeout: time.Minute}, &out)
			require.Equal(t, test.fails, err != nil, "%v\n%s", err, out.String())

			for _, part := range test.contains {
				require.Contains(t, out.String(), part)
			}
		})
	}
}

// TestReport checks that a test that never ended, because the process died, counts as failed.
func TestReport(t *testing.T) {
	t.Parallel()

	var out bytes.Buffer

	r := newReport(&out)
	for _, name := range []string{"TestA", "TestB"} {
		r.note(name, event{Action: "output", Test: name + "/part", Output: "why\n"})
		r.note(name, event{Action: "fail", Test: name + "/part"})
		r.note(name, event{Action: "fail", Test: name})
	}

	r.note("TestC", event{Action: "pass", Test: "TestC"})
	require.Equal(t, []string{"TestA", "TestNeverEnded"}, r.failed([]string{"TestA", "TestC", "TestNeverEnded"}))
}

// TestReportLogs checks that the lines of services do not hide what the test wrote.
func TestReportLogs(t *testing.T) {
	t.Parallel()

	var out bytes.Buffer

	r := newReport(&out)
	r.note("TestA", event{Action: "output", Test: "TestA", Output: "expected 1, actual 2\n"})

	for range 2 * logLines {
		r.note("TestA", event{Action: "output", Test: "TestA", Output: `{"level":"INFO"}` + "\n"})
	}

	r.writeLogs([]string{"TestA"})
	require.True(t, strings.HasSuffix(out.String(), "expected 1, actual 2\n\n"), out.String())
	require.Equal(t, logLines, strings.Count(out.String(), "INFO"))
}

// TestSerialTests checks that the tests that measure times are found and run alone.
func TestSerialTests(t *testing.T) {
	t.Parallel()

	names, err := serialTests("..")
	require.NoError(t, err)
	require.Contains(t, names, "TestNoisyNeighbour")
	require.NotContains(t, names, "TestRows")
}
