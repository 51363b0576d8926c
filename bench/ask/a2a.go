package ask

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

	"quern.dev/quern/bench/rig"
)

// a2aMore is how much later than the twin's our first event may arrive.
const a2aMore = 15 * time.Millisecond

// A2A measures the time until the first event of a stream, beside a server of the protocol's own library whose agent
// does nothing and which stores nothing. The first event of the assistant is the accepted task; that of nl2ql arrives
// when a worker has begun.
func A2A(ctx context.Context, b *rig.Bench) ([]rig.Result, error) {
	s, stop, err := b.StartService(ctx, scripted)
	if err != nil {
		return nil, err
	}
	defer stop()

	if _, err := s.NewDataset(ctx); err != nil {
		return nil, err
	}

	twin, err := b.StartTwin(ctx, "a2a")
	if err != nil {
		return nil, err
	}
	defer twin.Stop()

	bare, err := twin.Address(ctx, "api")
	if err != nil {
		return nil, err
	}

	addresses := []string{"http://" + bare, "http://" + s.API + "/api/v1/a2a/assistant", "http://" + s.API + "/api/v1/a2a/nl2ql"}
	took := make([][]time.Duration, len(addresses))

	for i := range b.Smalls + a2aWarm {
		for side, address := range addresses { // in turn, so that other load on the machine affects all
			first, err := firstEvent(ctx, address, s.Tokens["ada"])
			if err != nil {
				return nil, err
			}

			if i >= a2aWarm {
				took[side] = append(took[side], first)
			}
		}
	}

	bareTimes := rig.Sorted(took[0])

	var results []rig.Result

	for i, name := range []string{"a2a-assistant", "a2a-nl2ql"} {
		times := rig.Sorted(took[i+1])
		ours, alone := times.Quantile(0.5), bareTimes.Quantile(0.5)
		fmt.Fprintf(os.Stderr, "%s: %d streams, p95 ours %v, bare %v\n", name, b.Smalls, times.Quantile(0.95), bareTimes.Quantile(0.95))

		results = append(results, rig.Result{
			Name: name, Ours: rig.Milliseconds(float64(ours)), Bare: rig.Milliseconds(float64(alone)), Ratio: float64(alone) / float64(ours), Enough: ours-alone <= a2aMore,
		})
	}

	return results, nil
}

const a2aWarm = 5

// firstEvent asks a question and reads the stream to its end. It returns the time until the first event.
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

// noAgent is an agent that completes every task at once.
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

func A2ATwin(ctx context.Context) error {
	return rig.ServeTwin(ctx, a2asrv.NewJSONRPCHandler(a2asrv.NewHandler(noAgent{})))
}
