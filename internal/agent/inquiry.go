package agent

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/llm"
	"quern.dev/quern/internal/query"
	"quern.dev/quern/internal/verified"
)

// Tools are the parts of the service that agents use.
type Tools struct {
	Catalog catalog.Catalog
	Query   *query.Query
	Models  *llm.Models
	Now     func() time.Time

	Verified *verified.Verified // nil means that there are no verified questions
}

// inquiry is a question that an agent is answering.
type inquiry struct {
	tools    Tools
	who      auth.Principal
	question Question
	recorder *recorder
	planning bool // it writes events for a plan and an answer around its step
}

// recordPlanning writes an event around the only step, for an agent that has such events.
func (q *inquiry) recordPlanning(ctx context.Context, kind Kind, body any) error {
	if !q.planning {
		return nil
	}

	return q.recorder.record(ctx, kind, 0, body)
}

// before returns the events that an earlier worker wrote.
func (q *inquiry) before() []Event { return q.recorder.log.Before() }

// statement is a statement of a step, with what its events say.
type statement struct {
	index       int
	instruction string
	text        string
	attempt     int    // from 1
	model       string // plannerName if the planner wrote it
	basis       Basis
	explained   []Explained
	verified    *VerifiedAs  // the verified question whose statement it is
	needs       []query.Need // what that statement is expected to read
	isAside     bool         // not part of a step: it has no events, and its reads are not recorded
	isCheck     bool         // of a step that has been announced: it has no events
}

func (s statement) parameters() query.Parameters {
	if s.verified == nil {
		return query.Parameters{}
	}

	return verified.Bound(s.verified.Parameters)
}

// execute writes the events of a statement and runs it with the rights of the caller. The statement reads the snapshots
// that the run has pinned. It runs again if a concurrent step pinned another snapshot first.
func (q *inquiry) execute(ctx context.Context, s statement) (*query.Result, error) {
	log := q.recorder.log
	beforeRead := log.BeforeRead

	if s.isAside {
		beforeRead = nil
	}

	if !s.isAside && !s.isCheck {
		if err := q.announce(ctx, s); err != nil {
			return nil, err
		}
	}

	for {
		result, err := q.tools.Query.Run(ctx, q.who, query.Statement{
			Username: q.question.Username, Namespace: q.question.Namespace, Text: s.text, Form: query.Rows,
			OfRun: true, Pinned: log.Pinned(), BeforeRead: beforeRead,
			Parameters: s.parameters(), Lasting: s.verified != nil, Needs: s.needs,
		})
		if !errors.Is(err, ErrMoved) || ctx.Err() != nil {
			return result, err
		}
	}
}

// announce writes the event that the step has started, once, and the event of this attempt.
func (q *inquiry) announce(ctx context.Context, s statement) error {
	return q.recorder.recordAll(ctx,
		occurrence{eventKey{EventStepStarted, s.index}, 1, StepStarted{Index: s.index, Instruction: s.instruction, Model: s.model}},
		occurrence{eventKey{EventQueryExecuting, s.index}, s.attempt, QueryExecuting{
			Attempt: s.attempt, Index: s.index, Query: s.text, Basis: s.basis, Explained: s.explained, Verified: s.verified,
		}})
}

// choose returns datasets, up to the given number: those that the caller named, all of a small namespace, or those that a
// search for the words of the question finds.
func (q *inquiry) choose(ctx context.Context, most int) (chosen []catalog.Item, err error) {
	at := q.question.path()

	for _, name := range q.question.Datasets[:min(len(q.question.Datasets), most)] {
		one, err := q.tools.Catalog.Describe(ctx, q.who, at.Named(name))
		if err != nil {
			return nil, err
		}

		chosen = append(chosen, catalog.Item{Dataset: one.Dataset, Owner: one.Owner})
	}

	if len(chosen) > 0 {
		return chosen, nil
	}

	first, next, err := q.tools.Catalog.Datasets(ctx, q.who, at, uuid.Nil, most)
	if err != nil || next == uuid.Nil {
		return first, err
	}

	words := q.question.Text
	if before := len(q.question.Earlier); before > 0 {
		words += " " + q.question.Earlier[before-1].Question // for a question like "and in the south?"
	}

	found, _, err := q.tools.Catalog.Search(ctx, q.who, catalog.Search{Words: words, In: at, Limit: most})
	if len(found) == 0 {
		found = first
	}

	return found, err
}

// values returns the matches of text among the values of datasets.
func (q *inquiry) values(ctx context.Context, datasets []string, text string) ([]valueNote, error) {
	if len(datasets) == 0 {
		return nil, nil
	}

	matched, err := q.tools.Query.Match(ctx, q.who, query.MatchRequest{
		Username: q.question.Username, Namespace: q.question.Namespace, Datasets: datasets, Question: text,
	})
	found := make([]valueNote, 0, maxValues)

	for _, m := range matched.Matches[:min(len(matched.Matches), maxValues)] {
		found = append(found, valueNote{Words: text[m.Start:m.End], Dataset: m.Dataset, Column: m.Column, Value: m.Value})
	}

	return found, err
}

func (q Question) path() catalog.Path {
	return catalog.Path{Username: q.Username, Namespace: q.Namespace}
}

// today returns the time that relative dates in the question refer to, and its time zone.
func (q Question) today(now time.Time) (moment time.Time, zone string) {
	moment, zone = now.UTC(), "UTC"
	if !q.AsOf.IsZero() {
		moment = q.AsOf.UTC()
	}

	if place, err := time.LoadLocation(q.TimeZone); err == nil && q.TimeZone != "" {
		moment, zone = moment.In(place), q.TimeZone
	}

	return moment, zone
}

func inNamespace(asked Question, d catalog.Item) bool {
	return strings.EqualFold(d.Namespace, asked.Namespace) && (asked.Username == "self" || strings.EqualFold(d.Owner, asked.Username))
}

// nameOf returns the name of a dataset as statements write it.
func nameOf(asked Question, d catalog.Item) string {
	if inNamespace(asked, d) {
		return d.Name
	}

	return d.Owner + "/" + d.Namespace + "/" + d.Name
}
