//go:build soak

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	rulesPath     = "../deploy/prometheus/quern.rules.yaml"
	dashboardPath = "../deploy/grafana/quern.json"
)

// prometheus is a process of Prometheus that scrapes services.
type prometheus struct {
	t       *testing.T
	address string
}

// newPrometheus starts Prometheus with rules, and waits until it has scraped the services.
func newPrometheus(t *testing.T, rules string, every time.Duration, services ...*service) *prometheus {
	t.Helper()

	var targets []string
	for _, s := range services {
		targets = append(targets, fmt.Sprintf("%q", strings.TrimPrefix(s.admin, "http://")))
	}

	folder := t.TempDir()
	config := fmt.Sprintf("global: {scrape_interval: %v, evaluation_interval: %v}\nrule_files: [rules.yaml]\nscrape_configs:\n  - job_name: quern\n    static_configs: [{targets: [%s]}]\n",
		every, every, strings.Join(targets, ", "))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "prometheus.yaml"), []byte(config), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "rules.yaml"), []byte(rules), 0o600))

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)

	address := listener.Addr().String()
	require.NoError(t, listener.Close())

	process := exec.Command("../deploy/prometheus/prometheus", "--config.file="+filepath.Join(folder, "prometheus.yaml"), "--storage.tsdb.path="+filepath.Join(folder, "data"),
		"--web.listen-address="+address, "--log.level=error")
	process.Stderr = os.Stderr
	require.NoError(t, process.Start())
	t.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	})

	p := &prometheus{t, "http://" + address + "/api/v1"}
	await(t, "Prometheus has scraped all services", func() bool {
		answer, err := try(newRequest(t, http.MethodGet, p.address+"/query?query="+url.QueryEscape(`sum(up{job="quern"})`), "", ""))

		return err == nil && strings.Contains(answer.body, fmt.Sprintf(`"%d"`, len(services)))
	})

	return p
}

// firing reports whether an alert fires.
func (p *prometheus) firing(alert string) bool {
	p.t.Helper()

	var found struct {
		Data struct {
			Alerts []struct {
				State  string
				Labels struct{ Alertname string }
			}
		}
	}

	p.get("/alerts", &found)

	for _, one := range found.Data.Alerts {
		if one.Labels.Alertname == alert && one.State == "firing" {
			return true
		}
	}

	return false
}

func (p *prometheus) get(path string, into any) {
	p.t.Helper()

	answer, err := try(newRequest(p.t, http.MethodGet, p.address+path, "", ""))
	require.NoError(p.t, err)
	require.Equal(p.t, http.StatusOK, answer.status, answer.body)
	answer.json(p.t, into)
}

// series returns how many series an expression has had in a time.
func (p *prometheus) series(expression string, since time.Time) int {
	p.t.Helper()

	var found struct {
		Data struct{ Result []json.RawMessage }
	}

	p.get(fmt.Sprintf("/query_range?query=%s&start=%d&end=%d&step=15", url.QueryEscape(expression), since.Unix(), time.Now().Unix()), &found)

	return len(found.Data.Result)
}

// requirePanels checks that Prometheus answers the expressions of all panels of the dashboard, and prints which have no series.
func (p *prometheus) requirePanels(since time.Time) {
	p.t.Helper()

	content, err := os.ReadFile(dashboardPath)
	require.NoError(p.t, err)

	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}

	require.NoError(p.t, json.Unmarshal(content, &dashboard))

	all, empty := 0, []string{}

	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			all++
			if p.series(strings.ReplaceAll(target.Expr, "$__rate_interval", "1m"), since) == 0 {
				empty = append(empty, panel.Title+": "+target.Expr)
			}
		}
	}

	p.t.Logf("Prometheus answers the %d expressions of the dashboard; without series: %d %s", all, len(empty), strings.Join(empty, "\n"))
}

// fired returns the alerts that fired since a moment.
func (p *prometheus) fired(since time.Time) (alerts []string) {
	p.t.Helper()

	var found struct {
		Data struct {
			Result []struct {
				Metric struct{ Alertname string }
			}
		}
	}

	p.get(fmt.Sprintf("/query_range?query=%s&start=%d&end=%d&step=5", url.QueryEscape(`count by (alertname) (ALERTS{alertstate="firing"})`), since.Unix(), time.Now().Unix()), &found)

	for _, one := range found.Data.Result {
		alerts = append(alerts, one.Metric.Alertname)
	}

	return alerts
}

// during repeats an action, by some clients at a time, until the function that it returns is called.
func during(t *testing.T, clients int, action func(ctx context.Context)) (stop func()) {
	t.Helper()

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{}, clients)

	for range clients {
		go func() {
			defer func() { done <- struct{}{} }()

			for ctx.Err() == nil {
				action(ctx)
			}
		}()
	}

	return func() {
		cancel()

		for range clients {
			<-done
		}
	}
}
