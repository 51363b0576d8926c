package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"quern.dev/quern/api"
)

// schedule holds the flags that set when a source runs by itself.
type schedule struct {
	cron, timeZone string
	jitter         time.Duration
}

func (s *schedule) flags(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&s.cron, "schedule", "", "when it runs by itself, as five fields of cron: '0 3 * * *' is every day at three")
	flags.StringVar(&s.timeZone, "time-zone", "", "time zone of --schedule, such as Europe/Vienna (default UTC)")
	flags.DurationVar(&s.jitter, "jitter", 0, "run later than --schedule says by a fixed time below this, such as 10m, so that not all sources run at once")
}

// read returns nil if no schedule is given. command is named in errors.
func (s *schedule) read(command string) (*api.NewSchedule, error) {
	switch {
	case s.cron == "" && (s.timeZone != "" || s.jitter != 0):
		return nil, usageError{errors.New("--time-zone and --jitter need --schedule"), command}
	case s.cron == "":
		return nil, nil //nolint:nilnil // none is not a failure
	case s.jitter < 0 || s.jitter%time.Minute != 0:
		return nil, usageError{fmt.Errorf("--jitter %s must be whole minutes, such as 10m", s.jitter), command}
	}

	zone := s.timeZone
	if zone == "" {
		zone = "UTC"
	}

	return &api.NewSchedule{Cron: &s.cron, TimeZone: &zone, JitterMinutes: new(int32(s.jitter / time.Minute))}, nil //nolint:gosec // the contract has a maximum
}

const scheduleCommand = "quern source schedule"

func (p *program) sourceSchedule() *cobra.Command {
	var (
		wanted schedule
		none   bool
	)

	command := p.onSource("schedule", "Set or remove the schedule of a source", func(ctx context.Context, client *api.Client, id uuid.UUID) error {
		given, err := wanted.read(scheduleCommand)

		switch {
		case err != nil:
			return err
		case none == (given != nil):
			return usageError{errors.New("give --schedule, or --none to remove the schedule"), scheduleCommand}
		case none:
			given = &api.NewSchedule{}
		}

		changed, err := api.Read[api.Source](client.UpdateSource(ctx, id, api.SourceChange{Schedule: given}))

		switch {
		case err != nil:
			return err
		case none:
			return p.done("The source runs only when somebody asks for it.")
		case changed.NextRunAt == nil:
			return p.done("Set the schedule. The source is %s and does not run until it is resumed.", string(changed.Status))
		default:
			return p.done("Set the schedule. The source runs next at %s.", moment(*changed.NextRunAt))
		}
	})
	wanted.flags(command)
	command.Flags().BoolVar(&none, "none", false, "remove the schedule")

	return command
}

// scheduleText shows a schedule in one line.
func scheduleText(s api.Schedule) string {
	text := s.Cron + " in " + s.TimeZone
	if s.JitterMinutes > 0 {
		text += fmt.Sprintf(", up to %s later", counted(int64(s.JitterMinutes), "minute", "minutes"))
	}

	return text
}
