package ask

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"quern.dev/quern/bench/rig"
)

// mcpMore is how much longer than the same REST call a call of a tool may take.
const mcpMore = 5 * time.Millisecond

// toolCall is a call of a tool beside the call of REST that does the same.
type toolCall struct {
	name, method, path, body, tool string
}

// MCP measures calls of tools beside the same calls over REST, on the same service in turn. A tool also writes an audit entry of
// its own.
func MCP(ctx context.Context, b *rig.Bench) ([]rig.Result, error) {
	s, stop, err := b.StartService(ctx, scripted)
	if err != nil {
		return nil, err
	}
	defer stop()

	if _, err := s.NewDataset(ctx); err != nil {
		return nil, err
	}

	var results []rig.Result

	for _, one := range []toolCall{
		{"mcp-list", http.MethodGet, "/schema/datasets/all?limit=50", "", `{"name": "list_datasets", "arguments": {}}`},
		{"mcp-query", http.MethodPost, "/query", `{"query": "SELECT 42 AS n"}`, `{"name": "query", "arguments": {"sql": "SELECT 42 AS n"}}`},
	} {
		var took [2][]time.Duration

		for i := range b.Smalls + mcpWarm {
			for turn := range took { // in turn, so that other load on the machine affects both
				side := (i + turn) % len(took) // and each is first as often

				method, address, body := one.method, "http://"+s.API+"/api/v1"+one.path, one.body
				if side == 1 {
					method, address = http.MethodPost, "http://"+s.API+"/api/v1/mcp"
					body = `{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": ` + one.tool + `}`
				}

				once, err := timed(ctx, method, address, s.Tokens["ada"], body)
				if err != nil {
					return nil, err
				}

				if i >= mcpWarm {
					took[side] = append(took[side], once)
				}
			}
		}

		rest, tool := rig.Sorted(took[0]), rig.Sorted(took[1])
		bare, ours := rest.Quantile(0.5), tool.Quantile(0.5)
		fmt.Fprintf(os.Stderr, "%s: %d calls, p95 tool %v, REST %v\n", one.name, b.Smalls, tool.Quantile(0.95), rest.Quantile(0.95))

		results = append(results, rig.Result{
			Name: one.name, Ours: rig.Milliseconds(float64(ours)), Bare: rig.Milliseconds(float64(bare)), Ratio: float64(bare) / float64(ours), Enough: ours-bare <= mcpMore,
		})
	}

	return results, nil
}

const mcpWarm = 5

// timed sends a request that must succeed, and returns the time until its response is read.
func timed(ctx context.Context, method, address, token, body string) (time.Duration, error) {
	request, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return 0, err
	}

	request.Header.Set("Authorization", "Bearer "+token)

	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}

	begin := time.Now()

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()

	text, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err
	}

	if response.StatusCode != http.StatusOK || strings.Contains(string(text), `"isError":true`) || strings.Contains(string(text), `"error":`) {
		return 0, fmt.Errorf("%s: %s %s", address, response.Status, text)
	}

	return time.Since(begin), nil
}
