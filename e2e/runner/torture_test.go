package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// play is a torture whose parts only note that they ran. A loop kills as many processes in each run as its test says.
type play struct {
	torture

	ran   []string
	after func(p part) error // what a part does
}

func newPlay(t *testing.T, file string) *play {
	t.Helper()

	p := &play{torture: torture{
		file: file, killed: filepath.Join(t.TempDir(), "kills"), length: time.Hour, version: "one", out: &bytes.Buffer{},
		parts: []part{
			{name: "race TestA", row: "race"},
			{name: "race TestB", row: "race"},
			{name: "TestMany", row: "TestMany", loop: true, test: "30"},
			{name: "TestFew", row: "TestFew", loop: true, test: "10"},
		},
	}, after: func(part) error { return nil }}
	p.run = func(_ context.Context, one part) (bool, error) {
		p.ran = append(p.ran, one.name)

		if one.loop {
			line := fmt.Sprintf("{\"test\": \"x\", \"kills\": %s, \"rounds\": 2}\n", one.test)
			require.NoError(t, os.WriteFile(p.killed, []byte(line), 0o600))
		}

		err := p.after(one)

		return err == nil, nil
	}

	return p
}

func (p *play) output() string { return fmt.Sprint(p.out) }

// TestTorture checks the order of the parts and the table. It also checks that a second run continues where the first one ended.
func TestTorture(t *testing.T) {
	t.Parallel()

	file := filepath.Join(t.TempDir(), "folder", "results.jsonl")

	// Stopped in the second part: the outcome of the first one is kept.
	stopped, stop := context.WithCancel(t.Context())
	first := newPlay(t, file)
	first.goal = 100
	first.after = func(p part) error {
		if p.name == "TestFew" {
			stop()
		}

		return nil
	}
	require.ErrorIs(t, first.runAll(stopped), context.Canceled)
	require.Equal(t, []string{"TestMany", "TestFew"}, first.ran)

	// The kill loops go on, those with the fewest kills first, until the goal is reached. The others follow.
	second := newPlay(t, file)
	second.goal = 100
	require.NoError(t, second.runAll(t.Context()))
	require.Equal(t, []string{"TestFew", "TestFew", "TestFew", "TestMany", "TestFew", "race TestA", "race TestB"}, second.ran)
	require.Regexp(t, `(?m)^TestMany +2 +4 +60 .* 0  one$`, second.output())
	require.Regexp(t, `(?m)^TestFew +4 +8 +40 .* 0  one$`, second.output())
	require.Regexp(t, `(?m)^race +2 +0 +0 .* - +0  one$`, second.output())
	require.Regexp(t, `(?m)^sum +8 +12 +100 `, second.output())
	require.Contains(t, second.output(), "100 of 100 kills; 4 of 4 parts have passed in version one")

	// Nothing is left to do in this version. In another one everything runs again, and the kills stay.
	third := newPlay(t, file)
	require.NoError(t, third.runAll(t.Context()))
	require.Empty(t, third.ran)

	third.version, third.done = "two", nil
	require.NoError(t, third.runAll(t.Context()))
	require.Equal(t, "TestFew TestMany race TestA race TestB", strings.Join(third.ran, " "))
	require.Regexp(t, `(?m)^TestMany +1 +2 +30 .* two$`, third.output())
	require.Regexp(t, `(?m)^sum +12 +16 +140 `, third.output())
}

// TestTortureFails checks that the run continues after a failure, and that it reports the failure until the part passes.
func TestTortureFails(t *testing.T) {
	t.Parallel()

	file := filepath.Join(t.TempDir(), "results.jsonl")
	fails := newPlay(t, file)
	fails.goal = 1000
	fails.after = func(p part) error {
		if p.name != "race TestB" {
			return errors.New("red")
		}

		return nil
	}
	require.EqualError(t, fails.runAll(t.Context()), "failed: race TestA, TestMany, TestFew")
	require.Len(t, fails.ran, 4, "a part that has failed does not run twice")
	require.Regexp(t, `(?m)^TestMany +1 +2 +30 .* 1  one$`, fails.output())

	again := newPlay(t, file)
	again.goal = 40
	again.parts = again.parts[2:]
	require.NoError(t, again.runAll(t.Context()))
	require.Equal(t, "TestFew TestMany", strings.Join(again.ran, " "))
}

// TestTortureTime checks that a part ends when the time is over. The part begins again only in a run with more time.
func TestTortureTime(t *testing.T) {
	t.Parallel()

	file := filepath.Join(t.TempDir(), "results.jsonl")
	short := newPlay(t, file)
	short.length, short.parts = 50*time.Millisecond, short.parts[:1]
	short.run = func(ctx context.Context, _ part) (bool, error) {
		<-ctx.Done()

		return false, ctx.Err()
	}
	require.NoError(t, short.runAll(t.Context()), "it neither passed nor failed")
	require.Contains(t, short.output(), "race TestA takes longer than 50ms")

	same := newPlay(t, file)
	same.length, same.parts = short.length, short.parts
	require.NoError(t, same.runAll(t.Context()))
	require.Empty(t, same.ran)

	longer := newPlay(t, file)
	longer.parts = short.parts
	require.NoError(t, longer.runAll(t.Context()))
	require.Len(t, longer.ran, 1)
}

// TestKillLoops checks that the tests that call kill.Loop are found.
func TestKillLoops(t *testing.T) {
	t.Parallel()

	list, err := killLoops("../..")
	require.NoError(t, err)

	names := map[string]bool{}

	for _, p := range list {
		require.False(t, names[p.name], p.name)
		names[p.name] = true
	}

	require.True(t, names["TestIngestKillLoop"])
	require.True(t, names["internal/job TestLease"])
	require.False(t, names["TestSoak"], "it needs a build tag")
	require.Greater(t, len(list), 20)

	_, err = loopsOf("package e2e\n\nfunc helps(t *testing.T) {\n\tkill.Loop(t)\n}\n", "e2e")
	require.ErrorContains(t, err, "helps calls kill.Loop: let the test call it")
}

// TestOneWayToKill checks that tests kill processes with the package kill, which counts them. The files that are named here do so for
// other reasons.
func TestOneWayToKill(t *testing.T) {
	t.Parallel()

	others := map[string]string{
		"e2e/alertsfire_test.go":                         "a fault that lets an alert fire",
		"e2e/dev_test.go":                                "the servers of quernd dev",
		"e2e/harness_test.go":                            "a service that does not end",
		"e2e/prometheus_test.go":                         "ends Prometheus",
		"e2e/soakfault_test.go":                          "ends toxiproxy",
		"e2e/trinooutage_test.go":                        "the processes of Trino",
		"internal/engine/duckdb/statement_layer_test.go": "ends a program that was observed",
		"internal/job/lease_test.go":                     "ends the workers after the test",
		"internal/sandbox/nuisances_test.go":             "a sealed process that kills itself",
		"internal/sandbox/nuisance_test.go":              "names the signal",
		"internal/sandbox/pool_test.go":                  "the parent of a pool",
		"internal/sandbox/sandbox_test.go":               "ends a process after the test",
	}
	direct := regexp.MustCompile(`SIGKILL|[pP]rocess\.Kill\(\)|[vV]ictim\.Process\.Kill`)
	found := map[string]bool{}

	for _, folder := range []string{"e2e", "internal"} {
		for _, pattern := range []string{"*_test.go", "*/*_test.go", "*/*/*_test.go"} {
			paths, err := filepath.Glob(filepath.Join("../..", folder, pattern))
			require.NoError(t, err)

			for _, path := range paths {
				name, err := filepath.Rel("../..", path)
				require.NoError(t, err)
				source, err := os.ReadFile(path)
				require.NoError(t, err)

				if name != "e2e/runner/torture_test.go" && direct.Match(source) {
					found[name] = true
					require.NotEmpty(t, others[name], "%s kills a process directly: use kill.Process or kill.ID", name)
				}
			}
		}
	}

	for name := range others {
		require.True(t, found[name], "%s kills nothing directly", name)
	}
}

// TestGroup checks that processes which a command leaves behind end with it.
func TestGroup(t *testing.T) {
	t.Parallel()

	for name, patience := range map[string]time.Duration{"interrupted": time.Second, "ended by itself": time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()

			script := `sleep 1000 >/dev/null 2>&1 & echo $!`
			if name == "interrupted" {
				script += "; wait"
			}

			m := &machine{root: ".", out: &bytes.Buffer{}}
			began := time.Now()
			printed := filepath.Join(t.TempDir(), "printed")
			_, _ = m.command(ctx, "bash", "-c", "exec >"+printed+"; "+script)
			require.Less(t, time.Since(began), 15*time.Second)

			id, err := os.ReadFile(printed)
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				state, err := os.ReadFile("/proc/" + strings.TrimSpace(string(id)) + "/stat")

				return err != nil || strings.Contains(string(state), ") Z ")
			}, 10*time.Second, 10*time.Millisecond)
		})
	}
}
