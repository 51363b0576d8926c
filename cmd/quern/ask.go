package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
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
		raw, quiet, explain                                 bool
		choose                                              int
	)

	command := p.act("ask QUESTION", "Ask a question in plain language", func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("choose") {
			return nil
		}

		return cobra.MinimumNArgs(1)(cmd, args)
	}, func(ctx context.Context, client *api.Client, args []string) error {
		shown := &asking{program: p, raw: raw || p.format == "ndjson", quiet: quiet || p.format != "table", explain: explain}

		if choose > 0 {
			var err error
			if shown.conversation, shown.run, err = conversationOf(ctx, client, conversation, args); err != nil {
				return err
			}

			return shown.follow(ctx, client, client.ChooseEvents(ctx, shown.run, choose))
		}

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
			id, err := conversationID(ctx, client, conversation)
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

		return shown.follow(ctx, client, client.AskEvents(ctx, question))
	})
	command.Long = `Ask a question in plain language. The plan, each query with its rows, and the answer appear as they arrive.
If the question has several interpretations, choose one: at a terminal at once, otherwise with --choose.
Ctrl-C cancels the question. --json prints the events as NDJSON, --output json the finished result.`
	command.Example = "  quern ask -n shop 'Which region had the most orders last month?'\n  quern ask -c 0199c0ea-d6e8 --choose 2"
	inNamespace(command, &namespace)
	command.Flags().StringVarP(&conversation, "conversation", "c", "", "id of a conversation to continue")
	command.Flags().IntVar(&choose, "choose", 0, "number of the option to choose, of the question of the conversation that waits")
	command.Flags().StringVar(&agent, "agent", "", "agent: assistant answers in words, nl2ql returns rows (default assistant)")
	command.Flags().StringVar(&model, "model", "", "model to use")
	command.Flags().StringSliceVar(&datasets, "dataset", nil, "use only this dataset; can be repeated")
	command.Flags().StringVar(&moment, "as-of", "", "time to use as \"today\", such as 2026-11-01 (default now)")
	command.Flags().StringVar(&zone, "time-zone", "", "time zone, such as Europe/Vienna (default UTC)")
	command.Flags().BoolVar(&raw, "json", false, "print the events as they arrive, one JSON object per line")
	command.Flags().BoolVar(&explain, "explain", false, "print what each word of the question was taken for")
	command.Flags().BoolVarP(&quiet, "quiet", "q", false, "print only the answer")

	return command
}

// asking prints a run while it is in progress.
type asking struct {
	*program

	raw, quiet   bool
	explain      bool // the words of the question, too
	run          uuid.UUID
	conversation uuid.UUID
	ended        error
	waiting      *api.Clarification // what the run asks
	told         bool               // something was printed already
}

// follow prints events until the run ends. If the run asks for a choice and a person is there, it asks the person and goes on.
func (a *asking) follow(ctx context.Context, client *api.Client, events iter.Seq2[api.Event, error]) error {
	line := &progress{to: a.err}
	defer line.clear()

	line.say("Asking")

	for event, err := range events {
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

	switch asked := a.waiting; {
	case asked == nil:
	case !a.canChoose():
		a.howToChoose()
	default:
		a.waiting = nil

		number, err := a.pick(ctx, *asked)
		if err != nil {
			return err
		}

		if number > 0 {
			return a.follow(ctx, client, client.ChooseEvents(ctx, a.run, number))
		}
	}

	return a.ended
}

// waitingFor returns what happens between an event and the next one.
func waitingFor(event api.EventName) string {
	switch event {
	case api.EventRunWaiting, api.EventRunCompleted, api.EventRunCancelled, api.EventRunFailed:
		return ""
	case api.EventQueryExecuting:
		return "Running the query"
	default:
		return "Thinking"
	}
}

// leave cancels the run after the user interrupted the command.
func (a *asking) leave(ctx context.Context, client *api.Client, err error) error {
	if ctx.Err() == nil || a.run == uuid.Nil {
		return err
	}

	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer stop()

	if _, failed := api.Read[api.Run](client.CancelRun(ctx, a.run)); failed == nil {
		a.stopped = true

		if a.err.screen {
			a.err.printf("\r\x1b[K") // overwrites the ^C
		}

		a.err.printf("Cancelled.\n")
	}

	return err
}

func (a *asking) show(event api.Event) error {
	if a.raw {
		line, err := json.Marshal(event)
		if err != nil {
			return err
		}

		a.out.printf("%s\n", line)
	}

	words := !a.raw && !a.quiet

	switch event.Name {
	case api.EventRunStarted:
		return decoded(event, func(body api.RunStartedEvent) { a.run, a.conversation = body.RunID, body.ConversationID })
	case api.EventPlan:
		return decoded(event, func(body api.PlanEvent) {
			if words {
				a.plan(body.Steps)
			}
		})
	case api.EventQueryExecuting:
		return decoded(event, func(body api.QueryExecutingEvent) {
			if words {
				a.query(body)
			}
		})
	case api.EventStep:
		return decoded(event, func(body api.RunStep) {
			if words {
				a.step(body)
			}
		})
	case api.EventRunWaiting:
		return decoded(event, func(body api.RunWaitingEvent) {
			a.waiting = body.Result.Clarification
			a.ended = a.complete(body.Result)
		})
	case api.EventOptionChosen:
		a.waiting, a.ended = nil, nil
	case api.EventRunCompleted:
		return decoded(event, func(body api.RunCompletedEvent) { a.ended = a.complete(body.Result) })
	case api.EventRunCancelled:
		a.ended = exitError{exitInterrupted, "the question was cancelled", ""}
	case api.EventRunFailed:
		return decoded(event, func(body api.RunFailedEvent) {
			a.ended = &api.Error{ErrorResponse: api.ErrorResponse{ErrorCode: body.Code, Message: body.Message}}
		})
	default: // the result repeats what the other events say
	}

	return nil
}

// decoded calls use with the body of an event.
func decoded[T any](event api.Event, use func(body T)) error {
	var body T
	if err := event.Decode(&body); err != nil {
		return err
	}

	use(body)

	return nil
}

// section begins a part of the output, after an empty line if something was printed before.
func (a *asking) section(title string) {
	if a.told {
		a.out.printf("\n")
	}

	a.told = true

	if title != "" {
		a.out.printf("%s\n", a.out.style(cyan, title))
	}
}

// plan prints the instructions of the steps.
func (a *asking) plan(steps []string) {
	if len(steps) < 2 { // one step needs no plan
		return
	}

	a.section("Plan")

	for i, text := range steps {
		prefix := fmt.Sprintf("  %d. ", i+1)
		text = indent(wrap(a.out.clean(text), a.out.columns()-len(prefix)), strings.Repeat(" ", len(prefix)))
		a.out.printf("%s%s\n", prefix, strings.TrimLeft(text, " "))
	}
}

func (a *asking) query(executing api.QueryExecutingEvent) {
	title := fmt.Sprintf("Query %d", executing.Index+1)
	if executing.Attempt > 1 {
		title += fmt.Sprintf(", attempt %d", executing.Attempt)
	}

	a.section(title)
	a.out.printf("%s\n", a.out.style(dim, indent(wrap(a.out.clean(strings.TrimSpace(executing.Query)), a.out.columns()-2), "  ")))
}

const stepRows = 10

func (a *asking) step(step api.RunStep) {
	a.out.printf("\n")

	first := step.Data[:min(stepRows, len(step.Data))]
	_ = a.printRows(resultRows{step.Columns, first})

	if step.RowCount > int64(len(first)) {
		a.out.printf("%s\n", a.out.style(dim, fmt.Sprintf("%s in total", counted(step.RowCount, "row", "rows"))))
	}
}

// complete prints the answer and its provenance.
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

		a.out.printf("%s\n", a.out.clean(wrap(a.response(result), a.out.columns())))
		a.doubts(result.Doubts)
		a.options(result.Clarification)

		if !a.quiet && (a.waiting == nil || !a.canChoose()) {
			a.explained(result)
			a.provenance(result)
		}
	}

	if !isAnswer(result) {
		return exitError{exitNoAnswer, "", ""}
	}

	return nil
}

// isAnswer reports whether a result answers the question, also if some of its claims are in doubt.
func isAnswer(result api.RunResult) bool {
	return result.Outcome == api.OutcomeAnswer || result.Outcome == api.OutcomeAnswerUnverified
}

// response returns the text of a result, without the table that the output of its only step has shown.
func (a *asking) response(result api.RunResult) string {
	response := withoutLosses(result)

	text, _, hasTable := strings.Cut(response, ":\n\n| ")
	if a.quiet || !hasTable || result.Checks != nil || len(result.Steps) != 1 || result.Steps[0].RowCount > stepRows {
		return response
	}

	return text + "."
}

// says reports whether an answer contains the interpretation of its question, which the agents that run one statement begin it
// with: with a capital letter and without the marks of names.
func says(answer, interpretation string) bool {
	plain := func(text string) string {
		return strings.ToLower(strings.Join(strings.Fields(strings.ReplaceAll(text, "*", "")), " "))
	}

	return strings.Contains(plain(answer), strings.TrimRight(plain(interpretation), ".:?! "))
}

func (a *asking) provenance(result api.RunResult) {
	var notes []string

	if read := result.Interpretation; read != nil && *read != "" && isAnswer(result) && (a.explain || !says(result.Response, *read)) {
		notes = append(notes, "interpretation: "+*read)
	}

	if v := result.Verified; v != nil {
		notes = append(notes, verifiedNote(*v))
	} else if result.Model != nil && *result.Model != "" {
		notes = append(notes, "answered by: "+*result.Model+madeFrom(result.Basis))
	}

	if checks := result.Checks; checks != nil && checks.Claims > 0 {
		notes = append(notes, fmt.Sprintf("figures confirmed by rows: %d of %d", checks.Verified, checks.Claims))
	}

	if result.AsOf != nil {
		for _, read := range *result.AsOf {
			notes = append(notes, "dataset: "+read.Dataset+" as of "+moment(read.CommittedAt))
		}
	}

	notes = append(notes, "run: "+a.run.String())

	// One note per line, because people copy the last one.
	a.out.printf("\n%s\n", a.out.style(dim, a.out.clean(wrap(strings.Join(notes, "\n"), a.out.columns()))))

	if checks := result.Checks; checks != nil {
		for _, claim := range checks.Unverified {
			a.err.printf("%s %s\n", a.err.style(red, "not found in rows:"), a.err.clean(claim))
		}
	}
}
