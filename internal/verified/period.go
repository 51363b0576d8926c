package verified

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	firstYear = 1900
	lastYear  = 2199
)

var (
	yearText   = regexp.MustCompile(`^[0-9]{4}$`)
	monthText  = regexp.MustCompile(`^[0-9]{4}-[0-9]{2}$`)
	numberText = regexp.MustCompile(`^-?[0-9]{1,15}(\.[0-9]{1,9})?$`)
	doubtful   = regexp.MustCompile(`^-?[0-9]{1,3}\.[0-9]{3}$`) // 1.000 is one or a thousand, depending on the country
)

func isYear(text string) bool {
	year, err := strconv.Atoi(text)

	return err == nil && yearText.MatchString(text) && year >= firstYear && year <= lastYear
}

// monthOf returns the number of the month with a name; 0 if the word is not one.
func monthOf(word string) int {
	return 1 + slices.Index([]string{
		"january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
	}, word)
}

func isNumber(text string) bool { return numberText.MatchString(text) && !doubtful.MatchString(text) }

// parse reads the text of a value as the parameter takes it. It does not look up values of columns.
func (p Parameter) parse(text string) (value string, ok bool) {
	text = strings.TrimSpace(text)

	switch p.kind() {
	case 'v':
		return text, text != ""
	case 'n':
		return text, isNumber(text) && (strings.Contains(p.Type, "(") || p.Type == "double" || !strings.Contains(text, "."))
	case 'y':
		if p.Type == "date" {
			return text + "-01-01", isYear(text)
		}

		return text, isYear(text)
	case 'm':
		return parseMonth(text)
	default:
		day, err := time.Parse(time.DateOnly, text)

		return text, err == nil && day.Year() >= firstYear && day.Year() <= lastYear
	}
}

// parseMonth returns the first day of a month: March 2026 or 2026-03.
func parseMonth(text string) (day string, ok bool) {
	if monthText.MatchString(text) {
		at, err := time.Parse("2006-01", text)

		return text + "-01", err == nil && at.Year() >= firstYear && at.Year() <= lastYear
	}

	words := strings.Fields(strings.ToLower(text))
	if len(words) != 2 || monthOf(words[0]) == 0 || !isYear(words[1]) {
		return "", false
	}

	return fmt.Sprintf("%s-%02d-01", words[1], monthOf(words[0])), true
}
