package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"quern.dev/quern/e2e/kill"
)

// play is what the model replies to one question.
type play struct {
	plan    plannedReply
	queries map[string][]string // by instruction, one for each attempt; the last one is repeated
	answers []string            // one for each attempt; the last one is repeated
}

type plannedReply struct {
	Outcome        string         `json:"outcome"`
	Interpretation string         `json:"interpretation"`
	Reasoning      string         `json:"reasoning"`
	Steps          []plannedPart  `json:"steps"`
	Clarification  map[string]any `json:"clarification"`
}

type plannedPart struct {
	Instruction string `json:"instruction"`
	After       []int  `json:"after"`
}

// parts returns a plan of these steps.
func parts(steps ...plannedPart) plannedReply {
	return plannedReply{Outcome: "answer", Interpretation: "As it was asked.", Reasoning: "The rows say it.", Steps: steps}
}

func part(instruction string, after ...int) plannedPart {
	return plannedPart{instruction, append([]int{}, after...)}
}

// kind returns which of an assistant's three requests the conversation is: "plan", "query" or "answer".
func (c conversation) kind() string {
	for kind, beginning := range map[string]string{"plan": "You plan", "query": "You write", "answer": "You answer"} {
		if strings.HasPrefix(c[0].Content, beginning) {
			return kind
		}
	}

	return ""
}

// says returns the model's reply to a request of the assistant.
func says(plays map[string]play, said conversation) any {
	question, again := said.question(), (len(said)-2)/2

	switch one := plays[question]; said.kind() {
	case "plan":
		return one.plan
	case "answer":
		return one.answers[min(again, len(one.answers)-1)]
	}

	for _, one := range plays {
		if queries := one.queries[question]; queries != nil {
			return selects(queries[min(again, len(queries)-1)])
		}
	}

	return "?"
}

const (
	north = `SELECT sum("revenue") AS revenue FROM "orders" WHERE "region" = 'north'`
	south = `SELECT sum("revenue") AS revenue FROM "orders" WHERE "region" = 'south'`
	total = `SELECT sum("revenue") AS revenue FROM "orders"`
	best  = `SELECT "region", sum("revenue") AS revenue FROM "orders" GROUP BY ALL ORDER BY revenue DESC LIMIT 1`
)

func assistantPlays() map[string]play {
	three := map[string][]string{"Revenue of the north": {north}, "Revenue of the south": {south}, "All revenue": {total}}
	tooMany := parts()

	for i := range 8 {
		tooMany.Steps = append(tooMany.Steps, part(fmt.Sprintf("Orders of year %d", i)))
		three[fmt.Sprintf("Orders of year %d", i)] = []string{fmt.Sprintf(`SELECT count(*) AS n FROM "orders" WHERE "year" = %d`, 2020+i)}
	}

	return map[string]play{
		"How do the regions compare?": {
			plan: parts(part("Revenue of the north"), part("Revenue of the south"), part("All revenue")), queries: three,
			answers: []string{"The north made **320.5** [[0:0:revenue]] and the south 180 [[1:0:revenue]]: the north has 64 % [[= 0:0:revenue / 2:0:revenue]] of 500.5 [[2:0:revenue]]."},
		},
		"What does the best region sell?": {
			plan: parts(part("The region with the most revenue"), part("Orders of that region", 0)),
			queries: map[string][]string{
				"The region with the most revenue": {best},
				"Orders of that region":            {`WITH best AS (` + best + `) SELECT "region", count(*) AS n FROM "orders" JOIN best USING ("region") GROUP BY ALL`},
			},
			answers: []string{`The best region is "north" [[0:0:region]], with 2 [[1:0:n]] orders.`},
		},
		"Which step fails?": {
			plan:    parts(part("All revenue there is"), part("The colour of orders"), part("Orders by colour", 1)),
			queries: map[string][]string{"All revenue there is": {total}, "The colour of orders": {`SELECT "colour" FROM "orders"`}},
			answers: []string{"All revenue is 500.5 [[0:0:revenue]]."},
		},
		"Which step is empty?": {
			plan: parts(part("Revenue in total"), part("Orders of the west")),
			queries: map[string][]string{
				"Revenue in total": {total}, "Orders of the west": {`SELECT "year", "revenue" FROM "orders" WHERE "region" = 'west'`},
			},
			answers: []string{"All revenue is 500.5 [[0:0:revenue]]. The west has 0 [[1:count]] orders."},
		},
		"What is in every year?": {plan: tooMany, answers: []string{"In the sixth year there were 2 [[5:0:n]] orders."}},
		"What does nobody know?": {
			plan: parts(part("Whatever is known")), queries: map[string][]string{"Whatever is known": {total}},
			answers: []string{"All revenue is 731 [[0:0:revenue]].", "All revenue is 500.5 [[0:0:revenue]], of 17 orders."},
		},
		"What is corrected?": {
			plan: parts(part("What is right")), queries: map[string][]string{"What is right": {total}},
			answers: []string{"All revenue is 731 [[0:0:revenue]].", "All revenue is 500.5 [[0:0:revenue]]."},
		},
		"What is dangerous?": {
			plan: parts(part("Something <b>bold</b>")), queries: map[string][]string{"Something bold": {total}},
			answers: []string{`All revenue is ![500.5](https://example.org/?q=500.5) <img src="https://example.org/x.png">500.5 [[0:0:revenue]], see [here](https://example.org).`},
		},
		"Which of them?": {plan: plannedReply{Outcome: "clarification", Interpretation: "Either.", Steps: []plannedPart{}, Clarification: map[string]any{"question": "Which region?", "options": []string{"north", "south"}}}},
		"Was macht der Norden?": {
			plan: parts(part("Umsatz des Nordens")), queries: map[string][]string{"Umsatz des Nordens": {north}},
			answers: []string{"Der Norden macht 320,5 [[0:0:revenue]]."},
		},
		"What cannot be had?": {
			plan:    parts(part("The weight of orders"), part("The length of orders")),
			queries: map[string][]string{"The weight of orders": {`SELECT "weight" FROM "orders"`}, "The length of orders": {`SELECT "length" FROM "orders"`}},
		},
	}
}

// TestAssistantStreams compares the streams of questions to the assistant, over REST and A2A, with testdata.
func TestAssistantStreams(t *testing.T) {
	t.Parallel()

	plays := assistantPlays()
	m := newModel(t, func(said conversation) any { return says(plays, said) })
	s := start(t, append(m.settings(), "QUERN_RUN_MAX_PER_USER=100")...)
	d := newFilled(t, s, "ada", s.newKey().token("ada"))
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"region": "north", "year": 2025, "revenue": 120.5}, {"region": "north", "year": 2026, "revenue": 200}, {"region": "south", "year": 2025, "revenue": 180}]}`).status)

	for question := range plays {
		name := strings.ToLower(strings.Join(strings.FieldsFunc(question, func(r rune) bool { return r == ' ' || r == '?' }), "-"))

		t.Run(name, func(t *testing.T) {
			t.Parallel()

			own := *d
			own.t = t
			on := stage{&own, nil, nil, "assistant"}
			path := filepath.Join("testdata", "assistant", name+".golden")
			got := on.show(inStepOrder(t, on.stream(s, question)))

			if *update {
				require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
			}

			want, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, string(want), got)

			p := newPeer(&own, "assistant")
			golden(t, "assistant/play-"+name, p.call("SendStreamingMessage", p.ask(uuid.NewString(), question, "")))
		})
	}
}

// inStepOrder sorts the events by step, because steps that run in parallel mix their events, and numbers them again. It checks
// that the original numbers have no gaps.
func inStepOrder(t *testing.T, events []event) []event {
	t.Helper()

	index := func(e event) (at int) {
		var about struct{ Index int }

		switch e.name {
		case "runStarted", "planningStarted", "plan":
			return -1
		case "stepStarted", "queryExecuting", "step":
			require.NoError(t, json.Unmarshal([]byte(e.data), &about))

			return about.Index
		default:
			return 1000
		}
	}

	for i, e := range events {
		require.Equal(t, i+1, e.id)
	}

	slices.SortStableFunc(events, func(a, b event) int { return index(a) - index(b) })

	for i := range events {
		events[i].id = i + 1
	}

	return events
}

// TestAssistant checks follow-up questions, data that changed between questions, and the recorded use of tokens.
func TestAssistant(t *testing.T) {
	t.Parallel()

	plays := assistantPlays()
	m := newModel(t, func(said conversation) any { return says(plays, said) })
	s := start(t, m.settings()...)
	d := newFilled(t, s, "ada", s.newKey().token("ada"))
	require.Equal(t, http.StatusOK, d.post(`{"data": [{"region": "north", "year": 2025, "revenue": 320.5}, {"region": "south", "year": 2025, "revenue": 180}]}`).status)

	ask := func(question, more string) (run concluded) {
		answer := call(t, http.MethodPost, s.url+"/query/ask", d.bearer, d.script("assistant", question, more), "Accept: application/json", "Prefer: wait=60")
		require.Equal(t, http.StatusOK, answer.status, answer.body)
		answer.json(t, &run)
		require.Equal(t, "completed", run.Status, answer.body)

		return run
	}

	saved := d.call(http.MethodPut, "/inferDefinition", `{"dataDescription": "Sales of the wholesale shop.", "schemaDefinition": {"region": "Where the customer lives."}}`)
	require.Equal(t, http.StatusCreated, saved.status, saved.body)

	first := ask("What is corrected?", "")
	require.Contains(t, m.requests()[0], "Sales of the wholesale shop.", "the request for a plan")
	require.Contains(t, m.requests()[0], "Where the customer lives.", "the request for a plan")
	require.Equal(t, "All revenue is 500.5.", first.Result.Response)
	require.Len(t, m.requests(), 4, "a plan, a statement, an answer and its correction")
	require.Equal(t, 400, first.Result.Usage.InputTokens)

	within := fmt.Sprintf(`"conversationId": %q`, first.ConversationID)
	require.Equal(t, "All revenue is 500.5.", ask("What is corrected?", within).Result.Response, "nothing changed")

	require.Equal(t, http.StatusOK, d.post(`{"data": [{"region": "south", "year": 2026, "revenue": 0}]}`).status)
	require.Equal(t, "All revenue is 500.5.\n\nThe data has changed since this question was last asked: orders.", ask("What is corrected?", within).Result.Response)
	require.Contains(t, m.requests()[len(m.requests())-4], "Earlier in this conversation")
	require.Contains(t, m.requests()[len(m.requests())-4], `sum(`)

	for _, purpose := range []string{"plan", "query", "answer"} {
		calls := s.count(`SELECT count(*) FROM model_calls WHERE run_id = $1 AND purpose = $2`, first.RunID, purpose)
		tokens := s.count(`SELECT sum(input_tokens + output_tokens) FROM model_calls WHERE run_id = $1 AND purpose = $2`, first.RunID, purpose)
		t.Logf("%s: %d calls, %d tokens", purpose, calls, tokens)
	}
}

// TestAssistantKillLoop kills the assistant's workers while they plan, run statements and answer. Work that is recorded is not
// repeated.
func TestAssistantKillLoop(t *testing.T) {
	t.Parallel()
	kill.Loop(t)

	m := newModel(t, func(said conversation) any {
		pause(300 * time.Millisecond)

		var asker, step int

		switch _, err := fmt.Sscanf(said.question(), "Count of a%d_s%d", &asker, &step); {
		case err == nil:
			return selects(fmt.Sprintf(`SELECT count(*) AS n FROM %q`, stepDataset(asker, step)))
		case said.kind() == "answer":
			return "There are 2 [[0:0:n]] and 2 [[1:0:n]], 4 [[= 2:0:n + 3:0:n]] more."
		}

		_, err := fmt.Sscanf(said.question(), "Ask %d", &asker)
		require.NoError(t, err)

		plan := parts()
		for step := range 4 {
			plan.Steps = append(plan.Steps, part("Count of "+stepDataset(asker, step)))
		}

		plan.Steps[3].After = []int{0, 2}

		return plan
	})
	l := &askLoop{t: t, count: loops(100), askers: 4, steps: 4}
	l.write = func(asker, _ int) (kind, agent, question string) {
		return "plain", "assistant", fmt.Sprintf("Ask %d", asker)
	}
	l.run(m.settings()...)

	for _, f := range l.asked {
		require.Equal(t, "There are 2 and 2, 4 more.", f.run.Result.Response)
	}
}
