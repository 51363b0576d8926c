package duckdb

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/sandbox"
)

// TestHostileStatements sends statements that try to do more than read rows of datasets. It sends them against each
// layer of protection: everything; DuckDB's settings and the kernel, without the check; the kernel alone, on each tier;
// and, as a positive control, no protection.
func TestHostileStatements(t *testing.T) { //nolint:tparallel // the layers run one after the other, to tell what each took
	t.Parallel()

	var (
		dir    = t.TempDir()
		baits  = newBaits(t, dir)
		seals  = newSeals(t, dir)
		full   = seals.open(t, sandbox.Full)
		old    = seals.open(t, sandbox.Reduced)
		door   = openDoor(t, seals, full)
		tries  = sampled(hostileStatements(t))
		result = &caught{}
	)

	require.NoError(t, door.good(t.Context()))

	cached := tree(door.cache)

	for _, layer := range []layer{
		{"door", door.try},
		{"settings", settings(newEngine(full))},
		{"kernel, full", kernel(full)},
		{"kernel, reduced", kernel(old)},
	} {
		t.Run(layer.name, func(t *testing.T) {
			unharmed := others(t, door)
			most := watch(t, dir)

			forEach(t, tries, func(one try) {
				b := baits.lay(t)
				o := layer.try(t, one.against(b), b)

				marks := one.marks()
				if layer.name == "door" {
					marks = append(marks, full.Dir(), door.cache) // callers must not see these paths
				}

				for effect := range o.effects(b, tookLong+busy, marks...) {
					t.Errorf("%s: %s %s: %.300s", one.mechanism, effect, one.steps, o.said)
				}

				// The next layer would stop it too, but the check must not depend on that.
				if layer.name == "door" && one.reaches() && strings.Contains(o.said, "The engine cannot run") {
					t.Errorf("%s: past the check: %s", one.mechanism, one.steps)
				}

				result.add(one, layer.name, o.ending())
				require.NoError(t, os.RemoveAll(b.dir))
			})

			used := most()
			require.Positive(t, used.memory)
			require.LessOrEqual(t, used.memory, int64(usedMuch))
			require.LessOrEqual(t, used.disk, int64(wroteMuch))
			require.LessOrEqual(t, used.threads, int64(manyTasks))

			count, slowest := unharmed()
			t.Logf("the greediest child: %d MiB of memory, %d MiB on disk, %d threads; %d good statements beside, the slowest took %s",
				used.memory>>20, used.disk>>20, used.threads, count, slowest)
		})
	}

	require.Equal(t, cached, tree(door.cache), "files of datasets")

	t.Run("control", func(t *testing.T) {
		forEach(t, tries, func(one try) {
			b := baits.lay(t)
			patience := tookLong + busy
			if one.canary == "lasts" {
				patience = tookLong + time.Second
			}

			o := seals.free(t, one.against(b), b, patience)

			reached := o.effects(b, tookLong, one.marks()...)[one.canary]
			if !reached {
				t.Logf("not even free: %s: %s %.100s: %.200s (%s, %+v)", one.mechanism, one.canary, one.steps, o.said, o.took, o.used)
			}

			result.reach(one, reached)
			require.NoError(t, os.RemoveAll(b.dir))
		})

		require.GreaterOrEqual(t, result.reached*100, 60*len(tries), "positive control")
	})

	t.Log("\n" + result.table())
}

// try is an attempt: one or more statements, and the canary that they try to reach.
type try struct {
	mechanism string
	canary    string
	mark      string // a text that the result must not contain, besides the canary
	steps     []string
}

func (one try) marks() []string {
	if one.mark == "" {
		return nil
	}

	return []string{one.mark}
}

// reaches reports whether the attempt tries to reach something outside, and not to exceed a limit.
func (one try) reaches() bool {
	return slices.Contains([]string{"says", "writes", "calls", "threads"}, one.canary)
}

// against inserts the locations of the canaries into the statements.
func (one try) against(b *bait) []string {
	steps := make([]string, len(one.steps))
	for i, step := range one.steps {
		steps[i] = strings.NewReplacer("{bait}", b.dir, "{listener}", b.address, "{pid}", strconv.Itoa(os.Getpid())).Replace(step)
	}

	return steps
}

var (
	tryLine  = regexp.MustCompile(`^(says|writes|calls|dies|lasts|memory|disk|threads|floods)(?:\[(.*?)\])? (.*)$`)
	repeated = regexp.MustCompile(`\{(\d+)\*(.*?)\}`)
	escaped  = regexp.MustCompile(`\\u([0-9a-f]{4})`)
)

// hostileStatements reads testdata/statements, which has a file for each mechanism, and in it a line for each attempt
// that starts with the canary. Steps are separated by ;;. {3*x} means xxx, \n a new line and \u202e a character.
func hostileStatements(t *testing.T) (tries []try) {
	t.Helper()

	files, err := filepath.Glob(filepath.Join("testdata", "statements", "*.txt"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 25)

	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)

		count := 0

		for line := range strings.Lines(string(content)) {
			line = strings.TrimSuffix(line, "\n")
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}

			found := tryLine.FindStringSubmatch(line)
			require.NotNil(t, found, "%s: %s", file, line)

			text := repeated.ReplaceAllStringFunc(found[3], func(s string) string {
				parts := repeated.FindStringSubmatch(s)
				times, _ := strconv.Atoi(parts[1])

				return strings.Repeat(parts[2], times)
			})
			text = escaped.ReplaceAllStringFunc(strings.ReplaceAll(text, `\n`, "\n"), func(s string) string {
				code, _ := strconv.ParseInt(s[2:], 16, 32)

				return string(rune(code))
			})

			one := try{mechanism: strings.TrimSuffix(filepath.Base(file), ".txt"), canary: found[1], mark: found[2], steps: strings.Split(text, " ;; ")}
			require.False(t, slices.ContainsFunc(tries, func(other try) bool { return slices.Equal(one.steps, other.steps) }), "twice: %s", line)
			require.NotContains(t, text, canary)

			tries = append(tries, one)
			count++
		}

		require.GreaterOrEqual(t, count, 10, file)
	}

	return tries
}

// sampled returns one attempt of each mechanism, at a different position each time, or all attempts if loops run in
// full.
func sampled(tries []try) (list []try) {
	if os.Getenv("QUERN_TEST_LOOPS") == "full" {
		return tries
	}

	mechanism, at, which := "", 0, -1

	for _, one := range tries {
		if one.mechanism != mechanism {
			mechanism, at, which = one.mechanism, 0, which+1
		}

		if at == which%10 {
			list = append(list, one)
		}

		at++
	}

	return list
}

// forEach runs the attempts, a few at a time.
func forEach(t *testing.T, tries []try, do func(try)) {
	t.Helper()

	var (
		wait  sync.WaitGroup
		queue = make(chan try)
	)

	for range 4 {
		wait.Go(func() {
			for one := range queue {
				do(one)
			}
		})
	}

	for _, one := range tries {
		queue <- one
	}

	close(queue)
	wait.Wait()
}

// others runs valid statements until stop is called, which returns their number and the time of the slowest.
func others(t *testing.T, d *door) (stop func() (int, time.Duration)) {
	t.Helper()

	var (
		count   int
		slowest time.Duration
		wait    sync.WaitGroup
	)

	ctx, cancel := context.WithCancel(t.Context())

	wait.Go(func() {
		for ctx.Err() == nil {
			began := time.Now()

			if err := d.good(context.WithoutCancel(ctx)); err != nil {
				t.Errorf("a good statement beside: %v", err)
			}

			count, slowest = count+1, max(slowest, time.Since(began))

			time.Sleep(100 * time.Millisecond)
		}
	})

	return func() (int, time.Duration) {
		cancel()
		wait.Wait()

		return count, slowest
	}
}

// How an attempt ended.
const (
	refusedIt = "refused"
	stopped   = "stopped"  // by a limit, or the child died
	harmless  = "harmless" // the statement ran within its limits
)

func (o *outcome) ending() string {
	if o.failed == "" {
		return harmless
	}

	return o.failed
}

// caught counts what each layer caught.
type caught struct {
	mu         sync.Mutex
	mechanisms []string
	layers     []string
	counts     map[[3]string]int
	reached    int
}

const (
	control = "control"
	total   = "all"
)

func (l *caught) add(one try, layer, ending string) {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.counts == nil {
		l.counts = map[[3]string]int{}
	}

	if !slices.Contains(l.mechanisms, one.mechanism) {
		l.mechanisms = append(l.mechanisms, one.mechanism)
	}

	if !slices.Contains(l.layers, layer) {
		l.layers = append(l.layers, layer)
	}

	for _, mechanism := range []string{one.mechanism, total} {
		l.counts[[3]string{mechanism, layer, ending}]++
		l.counts[[3]string{mechanism, layer, total}]++
	}
}

func (l *caught) reach(one try, reached bool) {
	ending := "missed"

	if reached {
		ending = "reached"

		l.mu.Lock()
		l.reached++
		l.mu.Unlock()
	}

	l.add(one, control, ending)
}

func (l *caught) table() string {
	var text strings.Builder

	slices.Sort(l.mechanisms)

	out := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprint(out, "refused/stopped/harmless\ttries")

	for _, layer := range l.layers {
		fmt.Fprint(out, "\t"+layer)
	}

	fmt.Fprintln(out)

	for _, mechanism := range append(l.mechanisms, total) {
		fmt.Fprintf(out, "%s\t%d", mechanism, l.counts[[3]string{mechanism, control, total}])

		for _, layer := range l.layers {
			count := func(ending string) int { return l.counts[[3]string{mechanism, layer, ending}] }

			if layer == control {
				fmt.Fprintf(out, "\t%d reached", count("reached"))
			} else {
				fmt.Fprintf(out, "\t%d/%d/%d", count(refusedIt), count(stopped), count(harmless))
			}
		}

		fmt.Fprintln(out)
	}

	_ = out.Flush()

	return text.String()
}
