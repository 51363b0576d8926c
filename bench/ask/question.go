package ask

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"quern.dev/quern/api"
	"quern.dev/quern/bench/rig"
)

// scripted is the setting that makes the agents execute scripts. Only a quernd with the build tag of the same name has it.
const scripted = "QUERN_TEST_SCRIPTED=true"

// script is a question that contains what the agent does.
type script struct {
	Pause    int          `json:"pause,omitempty"` // milliseconds before each step
	Steps    []scriptStep `json:"steps"`
	Response string       `json:"response"`
}

type scriptStep struct {
	Instruction string   `json:"instruction"`
	Queries     []string `json:"queries,omitempty"`
}

const askStatement = `SELECT count(*) AS n FROM sales WHERE region = 'region 7' AND paid`

func askScript() script {
	return script{Steps: []scriptStep{{Instruction: "Count", Queries: []string{askStatement}}}, Response: "That many."}
}

// question returns a request that asks in ada's namespace.
func question(ctx context.Context, s *rig.Service, user string, agent api.QuestionAgent, do script) (*http.Request, error) {
	text, err := json.Marshal(do)
	if err != nil {
		return nil, err
	}

	return s.Request(ctx, user, http.MethodPost, "/query/ask", api.Question{Username: "ada", Namespace: "bench", Agent: &agent, Query: string(text)})
}

// follow reads a stream to the end of its run and calls see for each event. A run that does not complete is an error.
func follow(client *http.Client, request *http.Request, see func(seq int64)) error {
	request.Header.Set("Accept", "text/event-stream")

	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()

	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(response.Body) // the status is sufficient

		return fmt.Errorf("%s %s: %s %s", request.Method, request.URL, response.Status, body)
	}

	var (
		lines = bufio.NewReader(response.Body)
		seq   int64
		kind  string
	)

	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return fmt.Errorf("the stream ended after event %d: %w", seq, err)
		}

		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")

		switch name {
		case "id":
			if seq, err = strconv.ParseInt(value, 10, 64); err != nil {
				return err
			}
		case "event":
			kind = value
		case "data":
			see(seq)

			switch api.EventName(kind) {
			case api.EventRunCompleted:
				_, err := io.Copy(io.Discard, lines) // so that the connection can be reused

				return err
			case api.EventRunCancelled, api.EventRunFailed:
				return fmt.Errorf("the run did not complete: %s %s", kind, value)
			default:
			}
		}
	}
}
