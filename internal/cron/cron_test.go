package cron

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestCronFields checks what is accepted as a cron expression.
func TestCronFields(t *testing.T) {
	t.Parallel()

	for _, right := range []string{
		"* * * * *", "0 3 * * *", "*/15 0-6 1,15 jan-MAR mon-fri", "0 0 29 2 *", "59 23 31 12 7", "0-59/7 * * * sun,3", "5  4\t* * *", "0 0 31 2 mon",
	} {
		_, problem := Parse(right)
		require.Empty(t, problem, right)
	}

	for _, wrong := range []string{
		"", "* * * *", "* * * * * *", "@daily", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * 32 * *", "* * * 13 *", "* * * * 8", "-1 * * * *", "5-1 * * * *", "*/0 * * * *",
		"*/60 * * * *", "1/2 * * * *", "a * * * *", "1,, * * * *", "+1 * * * *", "*/+2 * * * *", "1- * * * *", "* * * mon *", "0 0 30 2 *", "0 0 31 4,6 *", "1;2 * * * *",
		"99999999999999999999 * * * *", "TZ=UTC * * * * *", "* * * * fri-mon", "/ * * * *", "*/ * * * *",
	} {
		_, problem := Parse(wrong)
		require.NotEmpty(t, problem, wrong)
	}
}

// TestCronDays compares which days match with a plain reading of the rules, for all days of eight years.
func TestCronDays(t *testing.T) {
	t.Parallel()

	for expression, matches := range map[string]func(t time.Time) bool{
		"0 0 * * *":     func(time.Time) bool { return true },
		"0 0 13 * *":    func(t time.Time) bool { return t.Day() == 13 },
		"0 0 * * 5":     func(t time.Time) bool { return t.Weekday() == time.Friday },
		"0 0 13 * 5":    func(t time.Time) bool { return t.Day() == 13 || t.Weekday() == time.Friday },
		"0 0 */2 * 5":   func(t time.Time) bool { return t.Day()%2 == 1 && t.Weekday() == time.Friday },
		"0 0 29 2 *":    func(t time.Time) bool { return t.Day() == 29 && t.Month() == time.February },
		"0 0 1 1,7 7":   func(t time.Time) bool { return (t.Day() == 1 || t.Weekday() == 0) && t.Month()%6 == 1 },
		"0 0 31 * *":    func(t time.Time) bool { return t.Day() == 31 },
		"0 0 * feb 1-3": func(t time.Time) bool { return t.Month() == 2 && t.Weekday() >= 1 && t.Weekday() <= 3 },
	} {
		c, problem := Parse(expression)
		require.Empty(t, problem)

		var want, got []time.Time

		begin, end := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2032, 1, 1, 0, 0, 0, 0, time.UTC)

		for day := begin.AddDate(0, 0, 1); day.Before(end); day = day.AddDate(0, 0, 1) {
			if matches(day) {
				want = append(want, day)
			}
		}

		for day, ok := c.Next(begin); ok && day.Before(end); day, ok = c.Next(day) {
			got = append(got, day)
		}

		require.Equal(t, want, got, expression)
	}
}
