package e2e

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

// a2aSchemas are the schemas that the card of an agent refers to.
type a2aSchemas struct {
	metadata  *jsonschema.Schema
	artifacts map[string]map[string]*jsonschema.Schema // by artifact, then data or metadata
	status    map[string]*jsonschema.Schema            // by state
}

// schemas reads the schemas from the card of the agent.
func (p *peer) schemas() (found a2aSchemas) {
	p.t.Helper()

	var card struct {
		Capabilities struct {
			Extensions []struct {
				URI    string
				Params struct {
					Schema    json.RawMessage
					Artifacts map[string]map[string]json.RawMessage
					Status    map[string]json.RawMessage
				}
			}
		}
	}

	call(p.t, http.MethodGet, p.address()+"/.well-known/agent-card.json", "", "").json(p.t, &card)
	require.Len(p.t, card.Capabilities.Extensions, 2)

	compile := func(text json.RawMessage) *jsonschema.Schema {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
		require.NoError(p.t, err)

		compiler := jsonschema.NewCompiler()
		require.NoError(p.t, compiler.AddResource("schema.json", value))

		return compiler.MustCompile("schema.json")
	}

	found = a2aSchemas{compile(card.Capabilities.Extensions[0].Params.Schema), map[string]map[string]*jsonschema.Schema{}, map[string]*jsonschema.Schema{}}

	for name, parts := range card.Capabilities.Extensions[1].Params.Artifacts {
		found.artifacts[name] = map[string]*jsonschema.Schema{}
		for part, text := range parts {
			found.artifacts[name][part] = compile(text)
		}
	}

	for state, text := range card.Capabilities.Extensions[1].Params.Status {
		found.status[state] = compile(text)
	}

	return found
}

// requireFits requires that the value fits the schema.
func requireFits(t *testing.T, schema *jsonschema.Schema, value any, what string) {
	t.Helper()

	text, err := json.Marshal(value)
	require.NoError(t, err)

	plain, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	require.NoError(t, err)
	require.NotNil(t, schema, what)
	require.NoError(t, schema.Validate(plain), "%s: %s", what, text)
}

// requireTask requires that a task which has ended or waits fits the schemas.
func (s a2aSchemas) requireTask(t *testing.T, task a2aTask) {
	t.Helper()
	requireFits(t, s.status[task.Status.State], task.Status.Message.Metadata, task.Status.State)
	requireFits(t, s.metadata, task.History[0].Metadata, "the metadata of the question")

	for _, artifact := range task.Artifacts {
		name := regexp.MustCompile(`^step-\d+$`).ReplaceAllString(artifact.Name, "step-N")
		schemas := s.artifacts[name]
		require.NotNil(t, schemas, artifact.Name)

		if artifact.Metadata != nil {
			requireFits(t, schemas["metadata"], artifact.Metadata, artifact.Name)
		}

		for _, part := range artifact.Parts {
			if part.Data != nil {
				requireFits(t, schemas["data"], part.Data, artifact.Name)
			}
		}
	}
}

// a2aSchemaRules are about the metadata of messages and of what comes back.
func a2aSchemaRules() map[string]func(r *ruled) {
	asked := func(r *ruled, namespace, more string) string {
		return `{"message": {"messageId": "` + uuid.NewString() + `", "role": "ROLE_USER", "parts": [{"text": ` + encode(r.t, oneStep) + `}], "metadata": {"namespace": "` + namespace + `"` + more + `}}}`
	}

	return map[string]func(r *ruled){
		"bad metadata: -32602, and no task": func(r *ruled) {
			namespace, other := makeDataset(r.t, r.s, r.other), &ruled{peer: newPeer(r.by(r.other), r.agent)}
			schemas := r.schemas()

			for more, said := range map[string]string{
				`"time_zone": "UTC"`:   "message.metadata.time_zone is not a key of this agent; did you mean timeZone?",
				`"maxrows": 1`:         "message.metadata.maxrows is not a key of this agent; did you mean maxRows?",
				`"zzz": 1`:             "message.metadata.zzz is not a key of this agent; the keys are namespace, datasets, helperPrompt, model, provider, asOf, timeZone, maxRows",
				`"maxRows": 0`:         "message.metadata.maxRows must be a whole number from 1 to 1000",
				`"maxRows": 1001`:      "message.metadata.maxRows must be a whole number from 1 to 1000",
				`"maxRows": 1.5`:       "message.metadata.maxRows must be a whole number from 1 to 1000",
				`"maxRows": "5"`:       "message.metadata.maxRows must be a whole number from 1 to 1000",
				`"helperPrompt": 1`:    "message.metadata.helperPrompt must be a string of 1 to 10000 characters",
				`"model": "absent"`:    "message.metadata.model ",
				`"provider": "absent"`: "message.metadata.model no model is configured on this server",
			} {
				code, message := rpcError(r.t, other.call("SendMessage", asked(r, namespace, ", "+more)))
				require.Equal(r.t, -32602, code, more)
				require.Contains(r.t, message, said)
				require.Equal(r.t, -32602, other.code("SendStreamingMessage", asked(r, namespace, ", "+more)))

				if !strings.Contains(more, "absent") {
					require.Error(r.t, schemas.metadata.Validate(decoded(r.t, "{"+more+"}")), more)
				}
			}

			require.Contains(r.t, other.call("ListTasks", `{}`).body, `"totalSize":0`)
		},
		"metadata of other extensions is ignored, and keeps its names": func(r *ruled) {
			more := `, "https://example.org/x": {"time_zone": 1}, "vendor.trace": "1"`
			r.result("SendMessage", asked(r, r.namespace, more))
			require.NoError(r.t, r.schemas().metadata.Validate(decoded(r.t, `{"namespace": "x"`+more+`}`)))
		},
		"an artifact has at most maxRows rows, and says so": func(r *ruled) {
			task := *rpcResult(r.t, r.call("SendMessage", asked(r, r.namespace, `, "maxRows": 1`))).Task
			r.schemas().requireTask(r.t, task)
			require.Equal(r.t, true, task.Status.Message.Metadata["truncated"])

			var found struct {
				Rows      []any
				RowCount  int
				Truncated bool
			}

			artifact := task.Artifacts[map[string]int{"nl2ql": 1, "assistant": 0}[r.agent]]
			require.NoError(r.t, json.Unmarshal(artifact.Parts[len(artifact.Parts)-1].Data, &found))
			require.Len(r.t, found.Rows, 1)
			require.Equal(r.t, 2, found.RowCount)
			require.True(r.t, found.Truncated)

			events := r.follow(r.request("SendStreamingMessage", asked(r, r.namespace, `, "maxRows": 1`)))
			for _, event := range events {
				if event.ArtifactUpdate != nil {
					require.NotContains(r.t, encode(r.t, event.ArtifactUpdate), "south")
				}
			}
		},
		"a failed task has a code, and says when to try again": func(r *ruled) {
			task := *rpcResult(r.t, r.call("SendMessage", r.ask(uuid.NewString(), failing, ""))).Task
			require.Equal(r.t, "TASK_STATE_FAILED", task.Status.State)
			require.Equal(r.t, map[string]any{"error": map[string]any{"code": "UNAVAILABLE", "details": []any{
				map[string]any{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "UNAVAILABLE", "domain": "quern.dev"},
				map[string]any{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "10s"},
			}}}, task.Status.Message.Metadata)
			r.schemas().requireTask(r.t, task)

			events := r.follow(r.request("SendStreamingMessage", r.ask(uuid.NewString(), failing, "")))
			require.Equal(r.t, task.Status.Message.Metadata, events[len(events)-1].StatusUpdate.Status.Message.Metadata)
		},
		"artifacts and the last message fit the schemas of the card": func(r *ruled) {
			schemas := r.schemas()
			for _, script := range []string{oneStep, noScript, unasked, "{}"} {
				schemas.requireTask(r.t, *rpcResult(r.t, r.call("SendMessage", r.ask(uuid.NewString(), script, ""))).Task)
			}
		},
	}
}

// decoded returns JSON as the library for schemas wants it.
func decoded(t *testing.T, text string) any {
	t.Helper()

	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	require.NoError(t, err)

	return value
}
