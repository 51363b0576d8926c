package internal_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

const rulesFile = "deploy/prometheus/quern.rules.yaml"

// ruleFile is a file of Prometheus with rules. Alert or Record is the name of a rule.
type ruleFile struct {
	Groups []ruleGroup `yaml:"groups"`
}

type ruleGroup struct {
	Name  string `yaml:"name"`
	Rules []rule `yaml:"rules"`
}

type rule struct {
	Record      string            `yaml:"record,omitempty"`
	Alert       string            `yaml:"alert,omitempty"`
	Expr        string            `yaml:"expr"`
	Labels      map[string]string `yaml:"labels,omitempty"`
	Annotations map[string]string `yaml:"annotations,omitempty"`
}

// promtool runs promtool in the folder of the rules.
func promtool(t *testing.T, arguments ...string) {
	t.Helper()

	command := exec.CommandContext(t.Context(), "./promtool", arguments...)
	command.Dir = "../deploy/prometheus"
	output, err := command.CombinedOutput()
	require.NoError(t, err, string(output))
}

// TestAlerts checks that every alert fires in the tests of the rules and stays quiet before, that it has an entry in the runbook, and that
// its expression uses only metrics that exist.
func TestAlerts(t *testing.T) {
	t.Parallel()

	promtool(t, "check", "rules", "--lint=all", "--lint-fatal", "quern.rules.yaml")
	promtool(t, "test", "rules", "quern.rules.test.yaml")

	var (
		rules ruleFile
		tests struct {
			Tests []struct {
				Rules []struct {
					Alert    string `yaml:"alertname"`
					Expected []any  `yaml:"exp_alerts"`
				} `yaml:"alert_rule_test"`
			}
		}
	)

	require.NoError(t, yaml.Unmarshal([]byte(content(t, rulesFile)), &rules))
	require.NoError(t, yaml.Unmarshal([]byte(content(t, "deploy/prometheus/quern.rules.test.yaml")), &tests))

	fires, quiet := map[string]bool{}, map[string]bool{}

	for _, test := range tests.Tests {
		for _, one := range test.Rules {
			if len(one.Expected) > 0 {
				fires[one.Alert] = true
			} else {
				quiet[one.Alert] = true
			}
		}
	}

	runbook := content(t, "docs/runbook.md")

	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			requireKnownMetrics(t, rule.Expr)

			if rule.Alert == "" {
				continue
			}

			require.True(t, fires[rule.Alert], "no test in which %s fires", rule.Alert)
			require.True(t, quiet[rule.Alert], "no test in which %s is quiet", rule.Alert)
			require.Contains(t, []string{"page", "ticket"}, rule.Labels["severity"], rule.Alert)
			require.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
			require.Equal(t, "docs/runbook.md#"+strings.ToLower(rule.Alert), rule.Annotations["runbook"])
			require.Contains(t, runbook, "\n## "+rule.Alert+"\n")
		}
	}

	for _, heading := range regexp.MustCompile(`(?m)^## (Quern\w+)$`).FindAllStringSubmatch(runbook, -1) {
		require.True(t, fires[heading[1]], "the runbook has an alert that does not exist: %s", heading[1])
	}
}

// TestDashboard checks that every panel of the dashboard has expressions that Prometheus can read, over metrics that exist.
func TestDashboard(t *testing.T) {
	t.Parallel()

	var dashboard struct {
		Panels []struct {
			Title, Type string
			Targets     []struct{ Expr string }
		}
	}

	require.NoError(t, json.Unmarshal([]byte(content(t, "deploy/grafana/quern.json")), &dashboard))
	require.NotEmpty(t, dashboard.Panels)

	group := ruleGroup{Name: "panels"}

	for _, panel := range dashboard.Panels {
		require.Equal(t, panel.Type == "row", len(panel.Targets) == 0, panel.Title)

		for _, target := range panel.Targets {
			requireKnownMetrics(t, target.Expr)

			expr := strings.ReplaceAll(target.Expr, "$__rate_interval", "5m") // Grafana replaces it
			group.Rules = append(group.Rules, rule{Record: "panel", Expr: expr})
		}
	}

	// promtool reads no dashboards, so each expression becomes a rule.
	file, err := yaml.Marshal(ruleFile{Groups: []ruleGroup{group}})
	require.NoError(t, err)

	path := filepath.Join(t.TempDir(), "panels.yaml")
	require.NoError(t, os.WriteFile(path, file, 0o600))
	promtool(t, "check", "rules", "--lint=none", path)
}

// requireKnownMetrics checks that the metrics of an expression are in docs/metrics.md, which TestMetricsDocumented compares with those of
// the service.
func requireKnownMetrics(t *testing.T, expr string) {
	t.Helper()

	known := content(t, "docs/metrics.md")

	for _, name := range regexp.MustCompile(`\bquern_\w+`).FindAllString(expr, -1) {
		name = strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count")
		require.Contains(t, known, "| `"+name+"` |", expr)
	}
}
