package record_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/record"
)

// bill is a document whose lines all quote its head.
func bill(t *testing.T, fields []record.Field, lines ...string) record.Records {
	t.Helper()

	head := "Invoice of 01.02.2026"
	claims := make([]said, len(lines))

	for n, line := range lines {
		words := strings.Fields(line)
		claims[n] = said{"item": {words[0], line, 1}, "price": {words[1], line, 1}, "day": {"01.02.2026", head, 1}}
	}

	return assemble(t, fields, record.Style{}, whole(head+"\n"+strings.Join(lines, "\n")+"\n"), claims...)
}

func prices(r record.Records) (list []string) {
	for _, one := range r.Records {
		list = append(list, one.Cells[2].Value)
	}

	return list
}

// corrected returns a correction of the field of a record.
func corrected(r record.Records, n int, field, value string) record.Correction {
	return record.Correction{Anchor: r.Anchors()[n], Key: r.Key(n), Field: field, Value: value}
}

func TestCorrect(t *testing.T) {
	t.Parallel()

	read := func() record.Records { return bill(t, goods(), "Bolt 1.5 EUR", "Bolt 2.5 EUR", "Nut 7 USD") }

	r := read()
	require.Equal(t, []string{"1.5", "2.5", ""}, prices(r))
	require.Equal(t, record.WrongUnit, r.Records[2].Cells[2].Flag)

	// Near-equal records are told apart by their own quotes, not by the head that all of them quote. The later of two corrections counts.
	fixes := []record.Correction{corrected(r, 2, "price", "8"), corrected(r, 1, "price", "3"), corrected(r, 2, "price", "6.5"), corrected(r, 0, "quantity", "12")}

	r = read()
	require.Empty(t, r.Correct(fixes))
	require.Equal(t, []string{"1.5", "3", "6.5"}, prices(r))
	require.Equal(t, "12", r.Records[0].Cells[1].Value, "the model said nothing about it")
	require.Equal(t, "2.5", r.Records[1].Cells[2].Read())
	require.Empty(t, r.Records[2].Cells[2].Read())
	require.Empty(t, r.Flagged(), "a corrected field is not in doubt")
	require.Equal(t, fixes[1].Anchor, *r.Records[1].Cells[2].Corrected)
	require.Equal(t, fixes[1].Anchor, r.Anchors()[1])

	// No value is a correction too.
	r = read()
	require.Empty(t, r.Correct([]record.Correction{corrected(r, 0, "price", "")}))
	require.Equal(t, []string{"", "2.5", ""}, prices(r))
	require.NotNil(t, r.Records[0].Cells[2].Corrected)

	// A field that is gone, and a value that does not have the kind of its field any more.
	r = read()
	require.Len(t, r.Correct([]record.Correction{corrected(r, 0, "colour", "red"), corrected(r, 0, "price", "cheap"), corrected(r, 0, "day", "soon")}), 3)
	require.Equal(t, []string{"1.5", "2.5", ""}, prices(r))
}

// TestCorrectMoved reads a document again with other quotes, or with other records.
func TestCorrectMoved(t *testing.T) {
	t.Parallel()

	page := "Offer\nBolt M6, black\n12 pieces\n1.20 EUR\nNut M6, black\n4 pieces\n0.30 EUR\n"
	read := func(claims ...said) record.Records {
		return assemble(t, goods(), record.Style{Decimal: '.'}, whole(page), claims...)
	}
	bolt := said{"item": {"Bolt M6", "Bolt M6, black", 1}, "price": {"1.20", "1.20 EUR", 1}}
	nut := said{"item": {"Nut M6", "Nut M6, black", 1}, "price": {"0.30", "0.30 EUR", 1}}

	r := read(bolt, nut)
	fix := []record.Correction{corrected(r, 1, "price", "0.4")}

	// The quotes are shorter, and there are more of them.
	again := read(said{"item": {"Bolt M6", "Bolt M6", 1}, "quantity": {"12", "12 pieces", 1}, "price": {"1.20", "1.20", 1}},
		said{"item": {"Nut M6", "Nut M6", 1}, "quantity": {"4", "4 pieces", 1}, "price": {"0.30", "0.30", 1}})
	require.Empty(t, again.Correct(fix))
	require.Equal(t, []string{"1.2", "0.4"}, prices(again))

	// The record is not read again, so its neighbour must not get the value.
	alone := read(bolt)
	require.Len(t, alone.Correct(fix), 1)
	require.Equal(t, []string{"1.2"}, prices(alone))

	// What was one record is two now.
	r = read(bolt, nut)
	require.Len(t, r.Correct([]record.Correction{{Anchor: record.Anchor{Page: 1, From: 6, To: 70, Ranks: 1}, Field: "price", Value: "9"}}), 1)
	require.Equal(t, []string{"1.2", "0.3"}, prices(r))

	// Two records in one sentence are told apart by their order, until one of them is missing.
	twins := func(names ...string) record.Records {
		line := "Bolt and Nut cost 3 EUR each"
		claims := make([]said, len(names))

		for n, name := range names {
			claims[n] = said{"item": {name, line, 1}, "price": {"3 EUR", line, 1}}
		}

		return assemble(t, goods(), record.Style{}, whole(line), claims...)
	}

	r = twins("Bolt", "Nut")
	fix = []record.Correction{corrected(r, 1, "price", "4")}

	r = twins("Bolt", "Nut")
	require.Empty(t, r.Correct(fix))
	require.Equal(t, []string{"3", "4"}, prices(r))

	r = twins("Bolt")
	require.Len(t, r.Correct(fix), 1)
	require.Equal(t, []string{"3"}, prices(r))
}

// TestCorrectKey corrects records of a dataset with a key: another key at the same place is another record.
func TestCorrectKey(t *testing.T) {
	t.Parallel()

	keyed := goods()
	keyed[0].InKey = true

	r := bill(t, keyed, "Bolt 1.5 EUR", "Nut 2.5 EUR")
	fix := []record.Correction{corrected(r, 1, "price", "3"), corrected(r, 1, "item", "Washer")}
	require.Equal(t, map[string]string{"item": "Nut"}, fix[0].Key)

	r = bill(t, keyed, "Bolt 1.5 EUR", "Nut 2.5 EUR")
	require.Empty(t, r.Correct(fix))
	require.Equal(t, []string{"1.5", "3"}, prices(r))
	require.Equal(t, "Washer", r.Records[1].Cells[0].Value)
	require.Equal(t, map[string]string{"item": "Nut"}, r.Key(1), "the key is what the document proves")

	r = bill(t, keyed, "Bolt 1.5 EUR", "Pin 2.5 EUR")
	require.Len(t, r.Correct(fix), 2)
	require.Equal(t, []string{"1.5", "2.5"}, prices(r))

	// Records that stand at one place are found by their key in any order.
	twins := func(names ...string) record.Records {
		line := "Bolt and Nut cost 3 EUR each"
		claims := make([]said, len(names))

		for n, name := range names {
			claims[n] = said{"item": {name, line, 1}, "price": {"3 EUR", line, 1}}
		}

		return assemble(t, keyed, record.Style{}, whole(line), claims...)
	}

	r = twins("Bolt", "Nut")
	fix = []record.Correction{corrected(r, 1, "price", "4")}

	r = twins("Nut", "Bolt")
	require.Empty(t, r.Correct(fix))
	require.Equal(t, []string{"4", "3"}, prices(r))

	r = twins("Nut")
	require.Empty(t, r.Correct(fix))
	require.Equal(t, []string{"4"}, prices(r))

	r = twins("Bolt")
	require.Len(t, r.Correct(fix), 1)
}

// TestCorrectMany corrects every record of a long list, each with a value of its own.
func TestCorrectMany(t *testing.T) {
	t.Parallel()

	var lines []string
	for n := range 300 {
		lines = append(lines, fmt.Sprintf("Bolt %d EUR", 1+n%7))
	}

	r := bill(t, goods(), lines...)

	var (
		fixes []record.Correction
		want  []string
	)

	for n := range lines {
		want = append(want, strconv.Itoa(1000+n))
		fixes = append(fixes, corrected(r, n, "price", want[n]))
	}

	require.Empty(t, r.Correct(fixes))
	require.Equal(t, want, prices(r))
}

func TestNormalize(t *testing.T) {
	t.Parallel()

	number, euros, whole := record.Field{Kind: record.Number}, record.Field{Kind: record.Number, Unit: "EUR"}, record.Field{Kind: record.Whole}
	date, at := record.Field{Kind: record.Date}, record.Field{Kind: record.Timestamp}

	for _, test := range []struct {
		field      record.Field
		text, want string
		flag       record.Flag
	}{
		{record.Field{}, "  Bolt   M6 ", "Bolt M6", ""},
		{record.Field{Kind: record.Text}, "1.234", "1.234", ""},
		{record.Field{Kind: record.Text}, "a\x00b", "ab", ""},
		{number, "12.5", "12.5", ""},
		{number, "-0,50", "-0.5", ""},
		{number, "1.234,50", "1234.5", ""},
		{number, "1.234", "", record.WrongType},
		{number, "1.2340", "1.234", ""},
		{number, "many", "", record.WrongType},
		{number, "1 2", "", record.WrongType},
		{euros, "3.50 €", "3.5", ""},
		{euros, "3.50 USD", "", record.WrongUnit},
		{record.Field{Kind: record.Number, Unit: "kg"}, "1.2 t", "1200", ""},
		{whole, "12", "12", ""},
		{whole, "12.5", "", record.WrongType},
		{date, "2026-03-04", "2026-03-04", ""},
		{date, "04.03.2026", "2026-03-04", ""},
		{date, "03/04/2026", "", record.WrongType},
		{date, "2026-02-30", "", record.WrongType},
		{at, "2026-03-04 9:05", "2026-03-04 09:05:00", ""},
		{record.Field{Kind: record.Time}, "9:05", "09:05:00", ""},
		{record.Field{Kind: record.Truth}, "ja", "true", ""},
		{record.Field{Kind: record.Truth}, "perhaps", "", record.WrongType},
	} {
		got, flag := record.Normalize(test.field, record.Style{}, test.text)
		require.Equal(t, test.want, got, "%s %q", test.field.Kind, test.text)
		require.Equal(t, test.flag, flag, "%s %q", test.field.Kind, test.text)
	}

	german, _ := record.Normalize(number, record.Style{Decimal: ','}, "1.234")
	require.Equal(t, "1234", german)
}
