package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"os"
	"strings"
	"time"

	protocol "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
)

// a2aMore is how much later than the twin's our first event may come.
const a2aMore = 15 * time.Millisecond

// runA2A measures the time until the first event of a stream, beside a server of the protocol's own library whose agent
// does nothing and which keeps nothing. The first event of the assistant is the accepted task, that of nl2ql comes when
// a worker has begun.
func runA2A(ctx context.Context, b *bench) ([]result, error) {
	s, stop, err := b.startService(ctx, "QUERN_RUN_SCRIPTED=true")
	if err != nil {
		return nil, err
	}
	defer stop()

	if _, err := s.newDataset(ctx); err != nil {
		return nil, err
	}

	twin, err := b.startTwin(ctx, "a2a")
	if err != nil {
		return nil, err
	}
	defer twin.stop()

	bare, err := twin.address(ctx, "api")
	if err != nil {
		return nil, err
	}

	addresses := []string{"http://" + bare, "http://" + s.api + "/api/v1/a2a/assistant", "http://" + s.api + "/api/v1/a2a/nl2ql"}
	took := make([][]time.Duration, len(addresses))

	for i := range b.smalls + a2aWarm {
		for side, address := range addresses { // in turn, so that whatever else the machine does meets all
			first, err := firstEvent(ctx, address, s.tokens["ada"])
			if err != nil {
				return nil, err
			}

			if i >= a2aWarm {
				took[side] = append(took[side], first)
			}
		}
	}

	bareTimes := sorted(took[0])

	var results []result

	for i, name := range []string{"a2a-assistant", "a2a-nl2ql"} {
		times := sorted(took[i+1])
		ours, alone := times.quantile(0.5), bareTimes.quantile(0.5)
		fmt.Fprintf(os.Stderr, "%s: %d streams, p95 ours %v, bare %v\n", name, b.smalls, times.quantile(0.95), bareTimes.quantile(0.95))

		results = append(results, result{
			name: name, ours: milliseconds(float64(ours)), bare: milliseconds(float64(alone)), ratio: float64(alone) / float64(ours), enough: ours-alone <= a2aMore,
		})
	}

	return results, nil
}

const a2aWarm = 5

// firstEvent asks, and reads the stream to its end. It returns when the first event was there.
func firstEvent(ctx context.Context, address, token string) (took time.Duration, err error) {
	body := fmt.Sprintf(`{"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": {"message": {"messageId": %q,
		"role": "ROLE_USER", "parts": [{"text": "{}"}], "metadata": {"namespace": "bench"}}}}`, protocol.NewMessageID())

	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		return 0, err
	}

	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(protocol.SvcParamVersion, string(protocol.Version))

	begin := time.Now()

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()

	lines := bufio.NewReader(response.Body)

	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return 0, fmt.Errorf("%s: no event: %w %s", address, err, line)
		}

		if strings.HasPrefix(line, "data:") {
			break
		}
	}

	took = time.Since(begin)
	_, err = io.Copy(io.Discard, lines)

	return took, err
}

// noAgent says that it is done.
type noAgent struct{}

func (noAgent) Execute(_ context.Context, asked *a2asrv.ExecutorContext) iter.Seq2[protocol.Event, error] {
	return func(yield func(protocol.Event, error) bool) {
		if yield(protocol.NewSubmittedTask(protocol.TaskInfo{TaskID: asked.TaskID, ContextID: asked.ContextID}, asked.Message), nil) {
			yield(protocol.NewStatusUpdateEvent(protocol.TaskInfo{TaskID: asked.TaskID, ContextID: asked.ContextID}, protocol.TaskStateCompleted, nil), nil)
		}
	}
}

func (noAgent) Cancel(context.Context, *a2asrv.ExecutorContext) iter.Seq2[protocol.Event, error] {
	return func(func(protocol.Event, error) bool) {}
}

func serveA2ATwin(ctx context.Context) error {
	return serveTwin(ctx, a2asrv.NewJSONRPCHandler(a2asrv.NewHandler(noAgent{})))
}
