package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"

	"golang.org/x/sync/errgroup"

	"quern.dev/quern/api"
)

// mutatedModel is the scripted model that answers with wrong statements.
const mutatedModel = "mutated"

// rightStatement is the mutation of a statement that is left as it is.
const rightStatement mutation = "none"

// mutated is a question with the statement that the model returns for it. A model that corrects itself returns the right
// statement if it is told anything; the other half of the models insist.
type mutated struct {
	question  *question
	mutation  mutation
	statement string
	corrects  bool
	end       ending
	doubts    []string
}

// ending is what became of a wrong statement.
type ending string

const (
	repaired  ending = "repaired"     // the result is right
	flagged   ending = "flagged"      // the result is wrong and says what is doubtful
	askedBack ending = "asked back"   // the caller is asked
	mentioned ending = "in reasoning" // the result is wrong, and only the text of the reasoning says that something differs
	missed    ending = "missed"
	untouched ending = "untouched"
	sentBack  ending = "sent back" // a right statement that the model had to confirm
)

// replays holds the statements of one round, by question, and counts the turns of the model.
type replays struct {
	mu    sync.Mutex
	now   map[string]*reply
	turns map[string]int
}

func (r *replays) set(now map[string]*reply) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.now, r.turns = now, map[string]int{}
}

// turn counts a turn of the model. Other models have no rounds.
func (r *replays) turn(id string) {
	if r == nil {
		return
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	r.turns[id]++
}

func (r *replays) of(id string) *reply {
	r.mu.Lock()
	defer r.mu.Unlock()

	if r.now[id] == nil {
		return &reply{Outcome: "refused"}
	}

	return r.now[id]
}

func (r *replays) told(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()

	return r.turns[id] > 1
}

// measureMutated makes wrong statements from the gold statements of the questions. A model returns them, and the function
// prints how the service reacted.
func (s *service) measureMutated(ctx context.Context, questions []*question, o options, script *script) error {
	cases, err := s.mutateAll(ctx, questions, o)
	if err != nil {
		return err
	}

	for _, kind := range append([]mutation{rightStatement}, mutations()...) {
		if err := s.askMutated(ctx, cases[kind], o, script); err != nil {
			return err
		}

		fmt.Fprintf(os.Stderr, "eval: %s: %d asked\n", kind, len(cases[kind]))
	}

	if err := keepMutated(o, cases); err != nil {
		return err
	}

	return printMutated(os.Stdout, o, cases)
}

// mutateAll returns one wrong statement for each question and each mutation that its statement allows, and the right
// statements.
func (s *service) mutateAll(ctx context.Context, questions []*question, o options) (map[mutation][]*mutated, error) {
	cases := map[mutation][]*mutated{}

	var mu sync.Mutex

	making, inside := errgroup.WithContext(ctx)
	making.SetLimit(o.parallel)

	for _, q := range sampled(questions, o.most) {
		making.Go(func() error {
			made, err := s.mutateOne(inside, q)

			mu.Lock()
			defer mu.Unlock()

			for _, one := range made {
				cases[one.mutation] = append(cases[one.mutation], one)
			}

			return err
		})
	}

	if err := making.Wait(); err != nil {
		return nil, discreet(err, o.split)
	}

	for kind, list := range cases {
		slices.SortFunc(list, func(a, b *mutated) int { return strings.Compare(a.question.ID, b.question.ID) })

		if o.most > 0 && len(list) > o.most { // spread over the set
			some := make([]*mutated, o.most)
			for i := range some {
				some[i] = list[i*len(list)/o.most]
			}

			list = some
		}

		for i, one := range list {
			one.corrects = i%2 == 0
		}

		cases[kind] = list
	}

	return cases, nil
}

// sampled returns the questions with statements. If the number of statements is limited, it returns a few questions for each of
// them, spread over the set.
func sampled(questions []*question, most int) (list []*question) {
	for _, q := range questions {
		if q.Answerable && q.strict() && len(q.GoldSQL) > 0 {
			list = append(list, q)
		}
	}

	wanted := questionsFor * most
	if most == 0 || len(list) <= wanted {
		return list
	}

	some := make([]*question, wanted)
	for i := range some {
		some[i] = list[i*len(list)/wanted]
	}

	return some
}

func (s *service) mutateOne(ctx context.Context, q *question) ([]*mutated, error) {
	today, err := q.today()
	if err != nil {
		return nil, err
	}

	gold := at(q.withoutSchemas(q.GoldSQL[0]), today)

	rows, ok, err := s.query(ctx, q, gold)
	if err != nil || !ok || decide(q, api.OutcomeAnswer, rows, true) != right {
		return nil, err
	}

	tables, err := s.knownTables(ctx, q)
	if err != nil {
		return nil, err
	}

	list := []*mutated{{question: q, mutation: rightStatement, statement: gold}}
	start := fnv.New32()
	_, _ = start.Write([]byte(q.ID)) // it cannot fail

	for _, kind := range mutations() {
		candidates := newMutant(gold, tables).mutate(kind)
		first := int(start.Sum32()) % max(len(candidates), 1)

		for i := range candidates {
			candidate := candidates[(first+i)%len(candidates)]

			rows, ok, err := s.query(ctx, q, candidate)
			if err != nil {
				return nil, err
			}

			if ok && len(rows.Rows) > 0 && decide(q, api.OutcomeAnswer, rows, true) == wrong {
				list = append(list, &mutated{question: q, mutation: kind, statement: candidate})

				break
			}
		}
	}

	return list, nil
}

const (
	mostValues   = 12 // of a column, from which wrong values are chosen
	questionsFor = 4  // questions for each wrong statement of a sample: not every mutation fits every question
)

// knownTables returns the tables of a question with their columns. Each column has some of its values, for mutations that replace a value.
func (s *service) knownTables(ctx context.Context, q *question) (list []knownTable, err error) {
	for _, t := range q.tables() {
		if stored, _ := s.known.Load(t); stored != nil {
			if known, ok := stored.(knownTable); ok {
				list = append(list, known)

				continue
			}
		}

		shown, err := s.run(ctx, q, fmt.Sprintf(`FROM "%s" LIMIT 1`, t.dataset))
		if err != nil || shown == nil {
			return nil, err
		}

		table := knownTable{name: t.dataset}

		for _, c := range shown.Columns {
			one := knownColumn{name: c.Name, class: classOf(c.Type)}

			if one.class == "text" {
				rows, _, err := s.query(ctx, q, fmt.Sprintf(`SELECT DISTINCT "%s" AS v FROM "%s" WHERE "%s" IS NOT NULL ORDER BY v LIMIT %d`, c.Name, t.dataset, c.Name, mostValues))
				if err != nil {
					return nil, err
				}

				for _, row := range rows.Rows {
					one.values = append(one.values, fmt.Sprint(row[0]))
				}
			}

			table.columns = append(table.columns, one)
		}

		s.known.Store(t, table)
		list = append(list, table)
	}

	return list, nil
}

func classOf(name string) string {
	name = strings.ToUpper(name)

	switch {
	case strings.Contains(name, "INT") && name != "INTERVAL", strings.HasPrefix(name, "DOUBLE"), strings.HasPrefix(name, "DECIMAL"), strings.HasPrefix(name, "FLOAT"):
		return "number"
	case strings.HasPrefix(name, "DATE"), strings.HasPrefix(name, "TIMESTAMP"):
		return "date"
	case name == "VARCHAR":
		return "text"
	}

	return name
}

// query runs a statement. ok is false if the statement is not valid.
func (s *service) query(ctx context.Context, q *question, text string) (rows resultSet, ok bool, err error) {
	got, err := s.run(ctx, q, text)
	if err != nil || got == nil {
		return resultSet{}, false, err
	}

	return rowsOf(api.RunStep{Columns: got.Columns, Data: got.Data}), true, nil
}

// run runs a statement and returns nil if it is not valid.
func (s *service) run(ctx context.Context, q *question, text string) (*api.QueryResult, error) {
	got, err := s.api.RunQueryWithResponse(ctx, nil, api.RunQueryJSONRequestBody{Username: &s.user, Namespace: new(q.namespace()), Query: text})

	switch {
	case err != nil:
		return nil, err
	case got.JSON200 == nil && got.StatusCode() == http.StatusBadRequest, got.StatusCode() == http.StatusUnprocessableEntity:
		return nil, nil //nolint:nilnil // not valid is not an error
	case got.JSON200 == nil:
		return nil, refusal("running a statement", got.HTTPResponse, got.Body)
	}

	return got.JSON200, nil
}

// askMutated asks the questions of one mutation.
func (s *service) askMutated(ctx context.Context, cases []*mutated, o options, script *script) error {
	now := map[string]*reply{}

	for _, one := range cases {
		said := &reply{Outcome: "answer", Queries: []string{one.statement}}
		if one.corrects && one.mutation != rightStatement {
			today, err := one.question.today()
			if err != nil {
				return err
			}

			said.Queries = append(said.Queries, at(one.question.withoutSchemas(one.question.GoldSQL[0]), today))
		}

		now[one.question.ID] = said
	}

	script.replays.set(now)

	asks, asking := errgroup.WithContext(ctx)
	asks.SetLimit(o.parallel)

	for _, one := range cases {
		asks.Go(func() error {
			got, err := s.askOne(asking, one.question, o, script)
			if err != nil {
				return discreet(err, o.split)
			}

			one.judge(got, script.replays.told(one.question.ID))

			return nil
		})
	}

	return asks.Wait()
}

// judge decides what became of a statement.
func (m *mutated) judge(got answer, told bool) {
	found := judge(m.question, got)
	m.doubts = doubtsOf(got.result)
	isRight := m.mutation == rightStatement

	switch {
	case found.Verdict == asked:
		m.end = askedBack
	case isRight && len(m.doubts) > 0:
		m.end = flagged
	case isRight && told:
		m.end = sentBack
	case isRight && found.Verdict == right:
		m.end = untouched
	case isRight:
		m.end = missed
	case found.Verdict == right:
		m.end = repaired
	case len(m.doubts) > 0:
		m.end = flagged
	case got.result != nil && slices.ContainsFunc(got.result.Steps, func(step api.RunStep) bool { return strings.Contains(step.Reasoning, "differently") }):
		m.end = mentioned
	default:
		m.end = missed
	}
}

// doubtsOf returns the doubts of a result.
func doubtsOf(result *api.RunResult) (list []string) {
	if result == nil || result.Doubts == nil {
		return nil
	}

	for _, one := range *result.Doubts {
		list = append(list, one.Kind+": "+one.Text)
	}

	return list
}

// keepMutated writes the cases of a development split, one per line.
func keepMutated(o options, cases map[mutation][]*mutated) error {
	if o.split == heldOut {
		return nil
	}

	if err := os.MkdirAll(o.out, 0o750); err != nil {
		return err
	}

	file, err := os.Create(filepath.Join(o.out, strings.Join([]string{"mutated", o.suite, o.split, o.agent}, "-")+".ndjson"))
	if err != nil {
		return err
	}

	lines := json.NewEncoder(file)
	lines.SetEscapeHTML(false)

	for _, kind := range append([]mutation{rightStatement}, mutations()...) {
		for _, one := range cases[kind] {
			line := struct {
				ID        string   `json:"id"`
				Mutation  mutation `json:"mutation"`
				End       ending   `json:"end"`
				Corrects  bool     `json:"corrects"`
				Question  string   `json:"question"`
				Statement string   `json:"statement"`
				Doubts    []string `json:"doubts,omitempty"`
			}{one.question.ID, kind, one.end, one.corrects, one.question.Text, one.statement, one.doubts}

			if err := lines.Encode(line); err != nil {
				return errors.Join(err, file.Close())
			}
		}
	}

	return file.Close()
}

// printMutated prints the endings by mutation. The last line has the totals.
func printMutated(to io.Writer, o options, cases map[mutation][]*mutated) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	ends := []ending{repaired, flagged, askedBack, mentioned, missed}

	fmt.Fprintf(table, "mutation\tn\t%s\t%s\t%s\t%s\t%s\tcaught\n", repaired, flagged, askedBack, mentioned, missed)

	all, caught := 0, 0

	for _, kind := range mutations() {
		counts := map[ending]int{}
		for _, one := range cases[kind] {
			counts[one.end]++
		}

		n, good := len(cases[kind]), counts[repaired]+counts[flagged]+counts[askedBack]
		all, caught = all+n, caught+good

		fmt.Fprintf(table, "%s\t%d", kind, n)

		for _, end := range ends {
			fmt.Fprintf(table, "\t%d", counts[end])
		}

		fmt.Fprintf(table, "\t%s\n", share(good, n))
	}

	counts := map[ending]int{}
	for _, one := range cases[rightStatement] {
		counts[one.end]++
	}

	n := len(cases[rightStatement])

	fmt.Fprintf(table, "\nright statements\tn\t%s\t%s\t%s\t%s\n", flagged, askedBack, sentBack, untouched)
	fmt.Fprintf(table, "\t%d\t%d\t%d\t%d\t%d\n\n", n, counts[flagged], counts[askedBack], counts[sentBack], counts[untouched])

	if err := table.Flush(); err != nil {
		return err
	}

	_, err := fmt.Fprintf(to, "eval %s %s %s agent=%s mutated=%d caught=%s right=%d disturbed=%s\n", o.suite, o.split, mutatedModel, o.agent, all, share(caught, all), n,
		share(n-counts[untouched], n))

	return err
}
