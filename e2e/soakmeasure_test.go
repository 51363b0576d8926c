//go:build soak

package e2e

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// soakTimes is how long operations took, how often answers had a status, and how long no request succeeded.
type soakTimes struct {
	mutex  sync.Mutex
	took   map[string]*tookOf
	counts map[string]int
	served time.Time // when a request succeeded last
	gap    time.Duration
}

// tookOf has the durations of one operation, including repetitions of its requests.
type tookOf struct {
	all, quiet []time.Duration // quiet: no fault at any moment
}

func (s *soakTimes) add(name string, took time.Duration, disturbed bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	if s.took == nil {
		s.took = map[string]*tookOf{}
	}

	one := s.took[name]
	if one == nil {
		one = &tookOf{}
		s.took[name] = one
	}

	one.all = append(one.all, took)
	if !disturbed {
		one.quiet = append(one.quiet, took)
	}
}

func (s *soakTimes) count(what string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	if s.counts == nil {
		s.counts = map[string]int{}
	}

	s.counts[what]++
}

// answered counts the answer of a request, which is nil if none arrived.
func (s *soakTimes) answered(got *answer) {
	if got == nil {
		s.count("no answer")

		return
	}

	what := strconv.Itoa(got.status)
	if again(got) && got.header.Get("Retry-After") == "" {
		what += " without Retry-After"
	}

	s.count(what)

	if got.status < http.StatusBadRequest {
		s.mutex.Lock()
		defer s.mutex.Unlock()

		now := time.Now()
		if !s.served.IsZero() {
			s.gap = max(s.gap, now.Sub(s.served))
		}

		s.served = now
	}
}

// next returns how requests were answered since it was called before, and the longest time in which none succeeded.
func (s *soakTimes) next() (counts map[string]int, gap time.Duration) {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	counts, gap = s.counts, s.gap
	s.counts, s.gap = nil, 0

	return counts, gap
}

// soakSeries is what the processes took over time.
type soakSeries struct {
	began   time.Time
	samples map[string]map[string][]soakSample // by process and by resource
}

type soakSample struct{ at, value float64 } // at: hours since the beginning

// measured are the resources that must not grow, each with the growth per hour that is accepted as noise, and the unit for people.
func measured() []resource {
	const mebi = 1 << 20

	return []resource{
		{"memory", "MiB", mebi, 64},
		{"goroutines", "", 1, 60},
		{"connections", "", 1, 6},
		{"open files", "", 1, 40},
		{"work folder without cache", "MiB", mebi, 32},
	}
}

type resource struct {
	name, unit string
	scale      float64
	noise      float64 // growth that is accepted
}

const measureEvery = 5 * time.Second

// measure notes every five seconds what the processes take.
func (k *soak) measure(ctx context.Context) {
	k.series = soakSeries{began: time.Now(), samples: map[string]map[string][]soakSample{}}

	for name := range k.services() {
		k.series.samples[name] = map[string][]soakSample{}
	}

	for ; ctx.Err() == nil; waitFor(ctx, measureEvery) {
		for name, one := range k.services() {
			found := metricsOf(ctx, one)
			if len(found) == 0 {
				continue // it is stopped
			}

			at := time.Since(k.series.began).Hours()
			folder := folderSize(setting(one.settings, "QUERN_SANDBOX_DIR"))

			for resource, value := range map[string]float64{
				"memory": found["process_resident_memory_bytes"], "goroutines": found["go_goroutines"],
				"open files":                found["process_open_fds"] - found["quern_query_indexes"], // indexes stay open until there are 500
				"connections":               found["quern_postgres_connections_used"] + found["quern_postgres_connections_idle"],
				"work folder without cache": float64(folder) - found["quern_cache_bytes"],
			} {
				k.series.samples[name][resource] = append(k.series.samples[name][resource], soakSample{at, value})
			}
		}
	}
}

// metricsOf returns the metrics without labels, or none if the process does not answer.
func metricsOf(ctx context.Context, s *service) map[string]float64 {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()

	got, err := try(newRequest(s.t, http.MethodGet, s.admin+"/metrics", "", "").WithContext(ctx))
	if err != nil || got.status != http.StatusOK {
		return nil
	}

	found := map[string]float64{}

	for line := range strings.Lines(got.body) {
		name, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		if value, err := strconv.ParseFloat(text, 64); err == nil {
			found[name] = value
		}
	}

	return found
}

// trend returns the mean of the samples after the first quarter, in which caches fill, and the slope per hour of the straight line that
// fits them best.
func trend(samples []soakSample) (mean, slope, hours float64) {
	samples = samples[len(samples)/4:]
	if len(samples) < 2 {
		return 0, 0, 0
	}

	var at, value, above, below float64

	for _, one := range samples {
		at += one.at / float64(len(samples))
		value += one.value / float64(len(samples))
	}

	for _, one := range samples {
		above += (one.at - at) * (one.value - value)
		below += (one.at - at) * (one.at - at)
	}

	return value, above / below, samples[len(samples)-1].at - samples[0].at
}

// report prints what was measured.
func (k *soak) report(took time.Duration) {
	k.t.Helper()

	var text strings.Builder

	all := 0
	for _, one := range k.times.took {
		all += len(one.all)
	}

	fmt.Fprintf(&text, "%d operations in %v, %.1f per second; answers: %v\n\n", all, took.Round(time.Second), float64(all)/took.Seconds(), k.times.counts)
	fmt.Fprintf(&text, "%-16s %7s %9s %9s %9s | %7s %9s %9s  (seconds, repetitions included; right: no fault meanwhile)\n", "operation", "count", "p50", "p99", "max", "count", "p50", "p99")

	for _, name := range slices.Sorted(maps.Keys(k.times.took)) {
		one := k.times.took[name]
		fmt.Fprintf(&text, "%-16s %7d %9.2f %9.2f %9.2f |", name, len(one.all), percentile(one.all, 50).Seconds(), percentile(one.all, 99).Seconds(), percentile(one.all, 100).Seconds())

		if len(one.quiet) > 0 {
			fmt.Fprintf(&text, " %7d %9.2f %9.2f", len(one.quiet), percentile(one.quiet, 50).Seconds(), percentile(one.quiet, 99).Seconds())
		}

		text.WriteString("\n")
	}

	fmt.Fprintf(&text, "\n%-20s %5s %9s  (recovery in seconds)\n", "fault", "times", "longest")

	for _, name := range slices.Sorted(maps.Keys(k.healed)) {
		fmt.Fprintf(&text, "%-20s %5d %9.1f\n", name, len(k.healed[name]), slices.Max(k.healed[name]).Seconds())
	}

	fmt.Fprintf(&text, "\n%-10s %-26s %10s %14s  (after the first quarter; the processes 2 are killed)\n", "process", "resource", "mean", "slope per hour")

	for _, process := range slices.Sorted(maps.Keys(k.series.samples)) {
		for _, one := range measured() {
			mean, slope, _ := trend(k.series.samples[process][one.name])
			fmt.Fprintf(&text, "%-10s %-26s %10.1f %+14.1f %s\n", process, one.name, mean/one.scale, slope/one.scale, one.unit)
		}
	}

	database, store := k.sizes()
	fmt.Fprintf(&text, "\nat the end: database %.1f MiB, objects %.1f MiB\n", float64(database)/mebibyte, float64(store)/mebibyte)
	k.t.Log("\n" + text.String())
}

// requireFlat checks that the processes that were never killed take as much at the end as at the beginning. It accepts a growth of a fifth,
// or of the noise.
func (k *soak) requireFlat() {
	k.t.Helper()

	for _, process := range []string{"api 1", "worker 1"} {
		for _, one := range measured() {
			mean, slope, hours := trend(k.series.samples[process][one.name])
			if grown := slope * hours; grown > max(mean/5, one.noise*one.scale) {
				k.t.Errorf("%s: %s grew by %.1f %s, on average %.1f", process, one.name, grown/one.scale, one.unit, mean/one.scale)
			}
		}
	}
}
