package main

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

func (p *program) verifiedCommand() *cobra.Command {
	return group("verified", "Keep questions with statements that are known to be right", p.verifiedList(), p.verifiedShow(), p.verifiedAdd(), p.verifiedEdit(), p.verifiedRetire())
}

// verifiedFlags are the flags that say what a verified question is.
type verifiedFlags struct {
	namespace, question, query, interpretation string
	wordings, params                           []string
	columns, periods                           map[string]string
}

func (f *verifiedFlags) add(command *cobra.Command) {
	inNamespace(command, &f.namespace)
	command.Flags().StringVar(&f.query, "query", "", "SQL statement that answers it; $name for a parameter")
	command.Flags().StringVar(&f.interpretation, "interpretation", "", "what the statement answers, in plain words")
	command.Flags().StringArrayVar(&f.wordings, "wording", nil, "another way to ask it; can be repeated")
	command.Flags().StringArrayVar(&f.params, "param", nil, "parameter with its default, as NAME:TYPE=VALUE; can be repeated")
	command.Flags().StringToStringVar(&f.columns, "column", nil, "column whose values a parameter has, as NAME=DATASET.COLUMN; can be repeated")
	command.Flags().StringToStringVar(&f.periods, "period", nil, "period that a parameter is, as NAME=year, month or day; can be repeated")
}

// parameters returns nil if there are none.
func (f *verifiedFlags) parameters() (*[]api.VerifiedParameter, error) {
	if len(f.params) == 0 {
		return nil, nil //nolint:nilnil // they stay as they are
	}

	list := []api.VerifiedParameter{}

	for _, text := range f.params {
		found := named.FindStringSubmatch(text)
		if found == nil || found[1] == "" {
			return nil, usageError{errors.New("--param is not NAME:TYPE=VALUE: " + text), "quern verified"}
		}

		one := api.VerifiedParameter{Name: found[1], Type: found[2], Default: found[3]}
		if column, ok := f.columns[one.Name]; ok {
			one.Column = &column
		}

		if period, ok := f.periods[one.Name]; ok {
			one.Period = new(api.VerifiedPeriod(period))
		}

		if one.Type == "" {
			one.Type = usualType(one)
		}

		list = append(list, one)
	}

	return &list, nil
}

// usualType returns the type of a parameter that is given without one.
func usualType(of api.VerifiedParameter) string {
	switch {
	case of.Column != nil:
		return "varchar"
	case of.Period != nil && *of.Period != api.VerifiedPeriodYear:
		return "date"
	default:
		return "bigint"
	}
}

func givenList(list []string) *[]string {
	if len(list) == 0 {
		return nil
	}

	return &list
}

func (p *program) verifiedAdd() *cobra.Command {
	var (
		flags verifiedFlags
		from  string
	)

	command := p.act("add [QUESTION]", "Keep the question of a run, or a question with its SQL", cobra.MaximumNArgs(1), func(ctx context.Context, client *api.Client, args []string) error {
		body := api.NewVerifiedQuestion{Query: given[string](flags.query), Interpretation: given[string](flags.interpretation), Wordings: givenList(flags.wordings)}

		if len(args) > 0 {
			body.Question = &args[0]
		}

		var err error
		if body.Parameters, err = flags.parameters(); err != nil {
			return err
		}

		if from == "" && (body.Question == nil || body.Query == nil) {
			return usageError{errors.New("give --from RUN, or a question and --query"), "quern verified add"}
		}

		at, err := p.verifiedAt(ctx, client, flags.namespace, from, &body)
		if err != nil {
			return err
		}

		made, err := api.Read[api.VerifiedQuestion](client.CreateVerifiedQuestion(ctx, at.owner, at.namespace, &api.CreateVerifiedQuestionParams{}, body))

		return orShow(err, func() error { return p.showVerified(made) })
	})
	command.Long = `Keep a question with the statement that answers it. From then on the question is answered by that statement, for everybody who may read its
datasets, and the answer says who verified it.

	quern verified add --from RUN
	quern verified add 'How many orders from $city are late?' -n shop --query "SELECT count(*) FROM orders WHERE late AND city = \$city" \
	  --param city=Vienna --column city=orders.city`
	flags.add(command)
	command.Flags().StringVar(&from, "from", "", "run whose question and statement are kept")

	return command
}

// verifiedAt returns the namespace of a new verified question: that of the run, unless the user names one.
func (p *program) verifiedAt(ctx context.Context, client *api.Client, namespace, from string, body *api.NewVerifiedQuestion) (name, error) {
	if from != "" {
		id, err := uuid.Parse(from)
		if err != nil {
			return name{}, usageError{errors.New("--from is not the id of a run: `quern runs` shows the ids"), "quern verified add"}
		}

		body.RunID = &id

		if namespace == "" {
			run, err := api.Read[api.Run](client.GetRun(ctx, id))

			return name{run.Username, run.Namespace, ""}, err
		}
	}

	return verifiedIn(namespace)
}

func verifiedIn(namespace string) (name, error) {
	if namespace == "" {
		return name{}, usageError{errors.New("a namespace is needed: -n NAMESPACE or -n OWNER/NAMESPACE"), "quern verified"}
	}

	return namespaceName(namespace)
}

func (p *program) verifiedList() *cobra.Command {
	var (
		limit             int
		namespace, status string
	)

	command := p.act("list", "List the verified questions of a namespace, newest first", cobra.NoArgs, func(ctx context.Context, client *api.Client, _ []string) error {
		at, err := verifiedIn(namespace)
		if err != nil {
			return err
		}

		return list(p, allVerified(ctx, client, at, status), limit, "No verified questions. `quern verified add --from RUN` keeps the question of a run.",
			column[api.VerifiedQuestion]{"id", func(q api.VerifiedQuestion) any { return q.ID }},
			column[api.VerifiedQuestion]{"status", func(q api.VerifiedQuestion) any { return string(q.Status) }},
			column[api.VerifiedQuestion]{"author", func(q api.VerifiedQuestion) any { return q.Author }},
			column[api.VerifiedQuestion]{"verified", func(q api.VerifiedQuestion) any { return q.VerifiedAt }},
			column[api.VerifiedQuestion]{"question", func(q api.VerifiedQuestion) any { return q.Question }},
			column[api.VerifiedQuestion]{"reason", func(q api.VerifiedQuestion) any { return valueOf(q.Reason) }},
		)
	})
	limitFlag(command, &limit)
	inNamespace(command, &namespace)
	command.Flags().StringVar(&status, "status", "", "only with this status: verified, suspended or retired")

	return command
}

func allVerified(ctx context.Context, client *api.Client, at name, status string) iter.Seq2[api.VerifiedQuestion, error] {
	parameters := api.ListVerifiedQuestionsParams{Limit: new(int32(100))}
	if status != "" {
		parameters.Status = new(api.VerifiedStatus(status))
	}

	return api.Pages(func(cursor *string) ([]api.VerifiedQuestion, *string, error) {
		parameters.Cursor = cursor
		page, err := api.Read[api.VerifiedQuestionList](client.ListVerifiedQuestions(ctx, at.owner, at.namespace, &parameters))

		return page.Data, page.NextCursor, err
	})
}

// onVerified returns a command about one verified question.
func (p *program) onVerified(use, short string, run func(ctx context.Context, client *api.Client, at name, id uuid.UUID) error) (command *cobra.Command, flags *verifiedFlags) {
	flags = &verifiedFlags{}
	command = p.act(use, short, cobra.ExactArgs(1), func(ctx context.Context, client *api.Client, args []string) error {
		at, err := verifiedIn(flags.namespace)
		if err != nil {
			return err
		}

		id, err := uuid.Parse(args[0])
		if err != nil {
			id, err = findID(args[0], "`quern verified list` shows the ids", allVerified(ctx, client, at, ""), func(q api.VerifiedQuestion) listed { return listed{q.ID, q.Question} })
		}

		if err != nil {
			return err
		}

		return run(ctx, client, at, id)
	})

	return command, flags
}

func (p *program) verifiedShow() *cobra.Command {
	command, flags := p.onVerified("show ID", "Show a verified question", func(ctx context.Context, client *api.Client, at name, id uuid.UUID) error {
		found, err := api.Read[api.VerifiedQuestion](client.GetVerifiedQuestion(ctx, at.owner, at.namespace, id))

		return orShow(err, func() error { return p.showVerified(found) })
	})
	inNamespace(command, &flags.namespace)

	return command
}

func (p *program) verifiedEdit() *cobra.Command {
	var (
		command *cobra.Command
		flags   *verifiedFlags
	)

	command, flags = p.onVerified("edit ID", "Change a verified question, or verify a suspended one again", func(ctx context.Context, client *api.Client, at name, id uuid.UUID) error {
		change := api.VerifiedQuestionChange{
			Question: given[string](flags.question), Query: given[string](flags.query), Interpretation: given[string](flags.interpretation), Wordings: givenList(flags.wordings),
			Status: new(api.VerifyAgain),
		}

		var err error
		if change.Parameters, err = flags.parameters(); err != nil {
			return err
		}

		saved, err := api.Read[api.VerifiedQuestion](client.UpdateVerifiedQuestion(ctx, at.owner, at.namespace, id, &api.UpdateVerifiedQuestionParams{}, change))

		return orShow(err, func() error { return p.showVerified(saved) })
	})
	command.Long = "Change a verified question. What no flag names stays as it is. The statement is checked again, so without a flag a suspended question is verified again."
	flags.add(command)
	command.Flags().StringVar(&flags.question, "question", "", "the question")

	return command
}

func (p *program) verifiedRetire() *cobra.Command {
	command, flags := p.onVerified("retire ID", "End the use of a verified question", func(ctx context.Context, client *api.Client, at name, id uuid.UUID) error {
		if _, err := api.Read[any](client.RetireVerifiedQuestion(ctx, at.owner, at.namespace, id)); err != nil {
			return err
		}

		return p.done("Retired. The question is answered as any other from now on.")
	})
	inNamespace(command, &flags.namespace)

	return command
}

func (p *program) showVerified(q api.VerifiedQuestion) error {
	return one(p, q, func() {
		p.out.printf("%s\n", p.out.style(bold, p.out.clean(q.Question)))

		for _, wording := range q.Wordings {
			p.out.printf("%s\n", p.out.clean(wording))
		}

		p.out.printf("\n%s\n\n", p.out.clean(q.Query))

		notes := []string{"id: " + q.ID.String(), "status: " + string(q.Status), "author: " + q.Author, "verified: " + moment(q.VerifiedAt)}
		if q.Imported != nil && *q.Imported {
			notes = append(notes, "imported: yes; `quern verified edit` without flags verifies it here")
		}

		if q.Reason != nil {
			notes = append(notes, "reason: "+*q.Reason)
		}

		for _, parameter := range q.Parameters {
			notes = append(notes, "parameter: $"+parameter.Name+" "+parameter.Type+", "+strings.TrimSpace(valueOf(parameter.Column)+" "+periodOf(parameter.Period))+" default "+parameter.Default)
		}

		for _, d := range q.Datasets {
			var columns []string
			for _, c := range d.Columns {
				columns = append(columns, c.Name)
			}

			notes = append(notes, "needs: "+d.Dataset+" ("+strings.Join(columns, ", ")+")")
		}

		p.out.printf("%s\n", p.out.style(dim, p.out.clean(strings.Join(notes, "\n"))))
	})
}

func periodOf(period *api.VerifiedPeriod) string {
	if period == nil {
		return ""
	}

	return string(*period)
}
