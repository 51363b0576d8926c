package e2e

import (
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/expfmt"
	labelnames "github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
)

const (
	metricsPage  = "../docs/metrics.md"
	metricsBegin = "<!-- The test TestMetricsDocumented writes this table with -update. -->\n\n"
)

// TestMetricsDocumented compares the table of docs/metrics.md with the metrics of a service that has loaded rows and answered
// questions, and checks what some of them count.
func TestMetricsDocumented(t *testing.T) {
	t.Parallel()

	m := newModel(t, func(conversation) any { return selects(`SELECT count(*) AS n FROM "orders"`) })
	s := start(t, append(m.settings(), "QUERN_MAINTENANCE_QUIET_PERIOD=1s", "QUERN_MAINTENANCE_INTERVAL=1s")...)
	d := newTrade(t, s, "ada", s.newKey().token("ada"))
	require.Equal(t, "answer", d.asks("How many orders are there?", "").Result.Outcome)

	var body string

	// The question is answered before its job has ended.
	await(t, "all work is counted", func() bool {
		body = call(t, http.MethodGet, s.admin+"/metrics", "", "").body

		return strings.Contains(body, "\nquern_job_seconds_count{kind=\"run.run\",outcome=\"done\"} 1\n")
	})

	parser := expfmt.NewTextParser(labelnames.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	require.NoError(t, err)

	var table strings.Builder

	table.WriteString("| metric | type | labels | what |\n|---|---|---|---|\n")

	for _, name := range slices.Sorted(maps.Keys(families)) {
		if !strings.HasPrefix(name, "quern_") {
			continue
		}

		var labels []string
		for _, label := range families[name].GetMetric()[0].GetLabel() {
			labels = append(labels, "`"+label.GetName()+"`")
		}

		fmt.Fprintf(&table, "| `%s` | %s | %s | %s |\n", name, strings.ToLower(families[name].GetType().String()), strings.Join(labels, ", "), families[name].GetHelp())
	}

	page, err := os.ReadFile(metricsPage)
	require.NoError(t, err)

	before, after, found := strings.Cut(string(page), metricsBegin)
	require.True(t, found)

	_, after, _ = strings.Cut(after, "\n\n")
	documented := before + metricsBegin + table.String() + "\n" + after

	if *update {
		require.NoError(t, os.WriteFile(metricsPage, []byte(documented), 0o644))
	}

	require.Equal(t, documented, string(page), "go test ./e2e -tags scripted -run TestMetricsDocumented -update")

	for _, line := range []string{
		`quern_run_seconds_count{agent="nl2ql",outcome="completed"} 1`, `quern_job_seconds_count{kind="run.run",outcome="done"} 1`,
		`quern_model_tokens_total{direction="input",model="` + families["quern_model_tokens_total"].GetMetric()[0].GetLabel()[1].GetValue() + `"} 100`,
		`quern_job_waiting{queue="run"} 0`, `quern_lease_lost_total 0`, `quern_sandbox_killed_total 0`, `quern_commit_conflicts_total 0`,
	} {
		require.Contains(t, body, "\n"+line+"\n")
	}
}

// TestBacklog checks that jobs that no worker takes are visible with their age.
func TestBacklog(t *testing.T) {
	t.Parallel()

	s := start(t, "QUERN_RUN_WORKERS=0")
	d := newFilled(t, s, "ada", s.newKey().token("ada"))
	asked := call(t, http.MethodPost, s.url+"/query/ask", d.bearer, d.script("nl2ql", "How many orders are there?", ""), "Prefer: respond-async")
	require.Equal(t, http.StatusAccepted, asked.status, asked.body)

	await(t, "a question waits for a second", func() bool {
		return s.gauge(`quern_job_waiting{queue="run"}`) == 1 && s.gauge(`quern_job_oldest_seconds{queue="run"}`) >= 1
	})

	another(t, s, "QUERN_RUN_WORKERS=1")
	await(t, "nothing waits", func() bool { return s.gauge(`quern_job_waiting{queue="run"}`) == 0 })
	require.Zero(t, s.gauge(`quern_job_oldest_seconds{queue="run"}`))
}
