package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

func (p *program) askCommand() *cobra.Command {
	var (
		namespace, conversation, moment, zone, agent, model string
		datasets                                            []string
		raw, quiet                                          bool
	)

	command := p.act("ask QUESTION", "Ask a question in plain language", cobra.MinimumNArgs(1), func(ctx context.Context, client *api.Client, args []string) error {
		at, err := chosenNamespace(namespace)
		if err != nil {
			return err
		}

		question := api.Question{
			Username: at.owner, Namespace: at.namespace, Query: strings.Join(args, " "), TimeZone: given[string](zone),
			Agent: given[api.QuestionAgent](agent), Model: given[string](model),
		}

		if datasets != nil {
			question.Datasets = &datasets
		}

		if conversation != "" {
			id, err := parseID(conversation, "`quern conversation list` shows them")
			if err != nil {
				return err
			}

			question.ConversationID = &id
		}

		if moment != "" {
			asOf, err := parseMoment(moment)
			if err != nil {
				return err
			}

			question.AsOf = &asOf
		}

		shown := &asking{program: p, raw: raw || p.format == "ndjson", quiet: quiet || p.format != "table"}

		return shown.follow(ctx, client, question)
	})
	command.Long = `Ask a question in plain language. The plan, each query with its rows, and the answer appear as they come.
Ctrl-C cancels the question. --json gives the events as NDJSON, --output json the finished result.`
	command.Example = "  quern ask -n shop 'Which region had the most orders last month?'"
	inNamespace(command, &namespace)
	command.Flags().StringVarP(&conversation, "conversation", "c", "", "id of a conversation to go on with")
	command.Flags().StringVar(&agent, "agent", "", "assistant, which answers in words, or nl2ql, which gives the rows; assistant if absent")
	command.Flags().StringVar(&model, "model", "", "which model shall answer")
	command.Flags().StringSliceVar(&datasets, "dataset", nil, "look at this dataset only; can be repeated")
	command.Flags().StringVar(&moment, "as-of", "", "what \"today\" is, such as 2026-11-01; now if absent")
	command.Flags().StringVar(&zone, "time-zone", "", "such as Europe/Vienna; UTC if absent")
	command.Flags().BoolVar(&raw, "json", false, "print the events as they come, one JSON object a line")
	command.Flags().BoolVarP(&quiet, "quiet", "q", false, "print the answer alone")

	return command
}

// asking shows a run while it goes on.
type asking struct {
	*program

	raw, quiet bool
	run        uuid.UUID
	ended      error
	told       bool // something is on the screen already
}

func (a *asking) follow(ctx context.Context, client *api.Client, question api.Question) error {
	line := &progress{to: a.err}
	defer line.clear()

	line.say("Asking")

	for event, err := range client.AskEvents(ctx, question) {
		if err != nil {
			line.clear()

			return a.leave(ctx, client, err)
		}

		line.clear()

		if err := a.show(event); err != nil {
			return err
		}

		if doing := waitingFor(event.Name); doing != "" {
			line.say(doing)
		}
	}

	return a.ended
}

// waitingFor is what happens after an event, until the next.
func waitingFor(event string) string {
	switch event {
	case "run-completed", "run-cancelled", "error":
		return ""
	case "queryExecuting":
		return "Running the query"
	default:
		return "Thinking"
	}
}

// leave cancels a question that nobody waits for any more.
func (a *asking) leave(ctx context.Context, client *api.Client, err error) error {
	if ctx.Err() == nil || a.run == uuid.Nil {
		return err
	}

	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer stop()

	if _, failed := api.Read[api.Run](client.CancelRun(ctx, a.run)); failed == nil {
		a.stopped = true

		if a.err.screen {
			a.err.printf("\r\x1b[K") // the ^C
		}

		a.err.printf("Cancelled.\n")
	}

	return err
}

func (a *asking) show(event api.Event) error {
	var body struct {
		api.RunStep

		RunID     uuid.UUID       `json:"runId"`
		Index     int             `json:"index"`
		Attempt   int             `json:"attempt"`
		Reasoning string          `json:"reasoning"`
		Steps     json.RawMessage `json:"steps"`
		Result    api.RunResult   `json:"result"`
		Code      api.ErrorCode   `json:"code"`
		Message   string          `json:"message"`
	}

	decoder := json.NewDecoder(strings.NewReader(string(event.Data)))
	decoder.UseNumber()

	if err := decoder.Decode(&body); err != nil {
		return fmt.Errorf("the event %s cannot be read: %w", event.Name, err)
	}

	if a.raw {
		line, err := json.Marshal(event)
		if err != nil {
			return err
		}

		a.out.printf("%s\n", line)
	}

	words := !a.raw && !a.quiet

	switch event.Name {
	case "run-started":
		a.run = body.RunID
	case "plan":
		if words {
			a.plan(body.Steps)
		}
	case "queryExecuting":
		if words {
			a.query(body.Query, body.Index, body.Attempt)
		}
	case "step":
		if words {
			a.step(body.RunStep)
		}
	case "run-completed":
		a.ended = a.complete(body.Result)
	case "run-cancelled":
		a.ended = exitError{exitInterrupted, "the question was cancelled", ""}
	case "error":
		a.ended = &api.Error{ErrorResponse: api.ErrorResponse{ErrorCode: body.Code, Message: body.Message}}
	}

	return nil
}

// section begins a part of the output, with a line of room to what is above.
func (a *asking) section(title string) {
	if a.told {
		a.out.printf("\n")
	}

	a.told = true

	if title != "" {
		a.out.printf("%s\n", a.out.style(cyan, title))
	}
}

// plan lists what will be done. Steps are sentences, or objects that have one.
func (a *asking) plan(content json.RawMessage) {
	var steps []json.RawMessage
	if json.Unmarshal(content, &steps) != nil || len(steps) < 2 { // one step needs no plan
		return
	}

	a.section("Plan")

	for i, step := range steps {
		var text string
		if json.Unmarshal(step, &text) != nil {
			var object struct {
				Instruction string `json:"instruction"`
			}
			_ = json.Unmarshal(step, &object)
			text = object.Instruction
		}

		prefix := fmt.Sprintf("  %d. ", i+1)
		text = indent(wrap(a.out.clean(text), a.out.columns()-len(prefix)), strings.Repeat(" ", len(prefix)))
		a.out.printf("%s%s\n", prefix, strings.TrimLeft(text, " "))
	}
}

func (a *asking) query(statement string, index, attempt int) {
	title := fmt.Sprintf("Query %d", index+1)
	if attempt > 1 {
		title += fmt.Sprintf(", attempt %d", attempt)
	}

	a.section(title)
	a.out.printf("%s\n", a.out.style(dim, indent(wrap(a.out.clean(strings.TrimSpace(statement)), a.out.columns()-2), "  ")))
}

const stepRows = 10

func (a *asking) step(step api.RunStep) {
	a.out.printf("\n")

	first := step.Data[:min(stepRows, len(step.Data))]
	_ = a.printRows(resultRows{step.Columns, first})

	if step.RowCount > int64(len(first)) {
		a.out.printf("%s\n", a.out.style(dim, fmt.Sprintf("%s in all", counted(step.RowCount, "row", "rows"))))
	}
}

// complete prints the answer, and what it rests on.
func (a *asking) complete(result api.RunResult) error {
	switch {
	case a.raw:
	case a.format == "json":
		if err := a.json(result); err != nil {
			return err
		}
	default:
		if !a.quiet {
			a.section("")
		}

		a.out.printf("%s\n", a.out.clean(wrap(result.Response, a.out.columns())))
		a.clarify(result)

		if !a.quiet {
			a.provenance(result)
		}
	}

	if result.Outcome != api.OutcomeAnswer {
		return exitError{exitNoAnswer, "", ""}
	}

	return nil
}

func (a *asking) clarify(result api.RunResult) {
	if result.Clarification == nil {
		return
	}

	for i, option := range result.Clarification.Options {
		a.out.printf("  %d. %s\n", i+1, a.out.clean(option))
	}
}

func (a *asking) provenance(result api.RunResult) {
	var notes []string

	if result.Reading != nil && *result.Reading != "" && result.Outcome == api.OutcomeAnswer {
		notes = append(notes, "read as: "+*result.Reading)
	}

	if result.Model != nil && *result.Model != "" {
		notes = append(notes, "by "+*result.Model)
	}

	if checks := result.Checks; checks != nil && checks.Claims > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d figures traced to rows", checks.Verified, checks.Claims))
	}

	if result.AsOf != nil {
		for _, read := range *result.AsOf {
			notes = append(notes, read.Dataset+" as of "+moment(read.CommittedAt))
		}
	}

	notes = append(notes, "run "+a.run.String())

	// One note a line, because the last is there to be copied.
	a.out.printf("\n%s\n", a.out.style(dim, a.out.clean(wrap(strings.Join(notes, "\n"), a.out.columns()))))

	if checks := result.Checks; checks != nil {
		for _, claim := range checks.Unverified {
			a.err.printf("%s %s\n", a.err.style(red, "not traced:"), a.err.clean(claim))
		}
	}
}
