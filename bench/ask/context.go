package ask

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"quern.dev/quern/api"
	"quern.dev/quern/bench/catalog"
	"quern.dev/quern/bench/query"
	"quern.dev/quern/bench/rig"
	"quern.dev/quern/stack"
)

const contextMore = 20 * time.Millisecond // how much longer a question may take because its namespace is large

// Context measures a question with a model in a namespace of very many datasets, where the datasets that the
// question may be about must be found, beside the same question in a namespace with as many datasets as a prompt
// contains. The model answers at once that there is no data, so that nothing else takes time.
func Context(ctx context.Context, b *rig.Bench) ([]rig.Result, error) {
	model := noDataModel()
	defer model.Close()

	c, stop, err := catalog.StartSearched(ctx, b, 2*b.Searched, modelSettings(model)...) // ada owns half of them
	if err != nil {
		return nil, err
	}
	defer stop()

	for _, statement := range []string{
		`INSERT INTO namespaces (account_id, id, name, name_key, created_at) SELECT account_id, seeded('few', -1), 'few', 'few', now() FROM namespaces WHERE name = 'warehouse'`,
		`INSERT INTO datasets (account_id, id, namespace_id, name, name_key, definition_revision, data_description, schema_definition, columns, row_count, created_at, updated_at)
			SELECT account_id, seeded('few', i), seeded('few', -1), name, name_key, 1, data_description, schema_definition, columns, 1000, now(), now()
			FROM generate_series(1, 20) i JOIN datasets ON id = seeded('ada', i)`,
	} {
		if err := stack.Execute(ctx, c.Database, statement); err != nil {
			return nil, err
		}
	}

	var many, few []time.Duration

	for i := range b.Asks + query.Warm {
		question := contextQuestion(i * b.Searched / (b.Asks + query.Warm))

		inMany, err := answerIn(ctx, c, "warehouse", question)
		if err != nil {
			return nil, err
		}

		inFew, err := answerIn(ctx, c, "few", question)
		if err != nil {
			return nil, err
		}

		if i >= query.Warm {
			many, few = append(many, inMany), append(few, inFew)
		}
	}

	return []rig.Result{overhead("context", many, few, contextMore)}, nil
}

// contextQuestion names a dataset by its number.
func contextQuestion(dataset int) string {
	return fmt.Sprintf("What is the largest amount by region in dataset %d, and how many orders are there?", dataset)
}

// noDataModel is a language model that answers at once that there is no data.
func noDataModel() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id": "1", "object": "chat.completion", "created": 1, "model": "m", "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
			"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant",
				"content": "{\"outcome\": \"no_data\", \"interpretation\": \"\", \"query\": \"\", \"reasoning\": \"\", \"clarification\": null}"}}]}`)
	}))
}

// modelSettings are those of a service whose only model this is.
func modelSettings(model *httptest.Server) []string {
	return []string{"QUERN_MODELS=bench/m", "QUERN_MODEL_BENCH_KIND=openai", "QUERN_MODEL_BENCH_LOCAL=true", "QUERN_MODEL_BENCH_URL=" + model.URL + "/v1"}
}

// answerIn returns how long a question takes from the request to its end.
func answerIn(ctx context.Context, c *catalog.Catalog, namespace, question string) (took time.Duration, err error) {
	agent := api.QuestionAgentNl2Ql

	request, err := c.Request(ctx, "ada", http.MethodPost, "/query/ask", api.Question{Username: "ada", Namespace: namespace, Agent: &agent, Query: question})
	if err != nil {
		return 0, err
	}

	begin := time.Now()

	err = follow(http.DefaultClient, request, func(int64) { took = time.Since(begin) })

	return took, err
}
