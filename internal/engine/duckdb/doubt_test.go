package duckdb

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSteadier checks which delimiter replaces the comma that the sniffer found.
func TestSteadier(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"Umsatz 2025\n\nNr;Menge;Preis\n1;2,5;3,5\n2;4,5;5,5\n": ";", // a title, a header without commas, two numbers in each row
		"Nr|Preis\n1|3,5\n2|5,5\n3|7,5\n":                       "|",
		"a,b\n1,x;y\n2,x;y\n":                                   ",",
		"a,b,c\n1,2,x;y;z;v\n2,3,x;y;z;v\n":                     ",", // more cells, but not in the header
		"1,2\n3,4\n":                                            ",",
		"":                                                      ",",
	} {
		require.Equal(t, want, dialect{delimiter: ",", quote: `"`}.steadier([]byte(text)), text)
	}
}

// TestDivider checks when one column is taken for several.
func TestDivider(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		"id;city\n1;Graz\n2;Linz\n":                        ";",
		"id;city\n1;Graz\n2;Li":                            ";", // the sample ends in a record
		"id|city\n\n1|Graz\n":                              "|",
		"1\tGraz\n2\tLinz\n":                               "\t", // no header
		"id;\"a\nb\"\n1;\"c;d\"\n":                         ";",
		"city\nGraz\nLinz\n":                               "",
		"comment\ngood\nfine, and cheap\nnice, big, new\n": "", // commas in some of the texts
		"comment\nfine, and cheap\nnice, and new\n":        "",
		"Doe, Jane\nRoe, Rick\n":                           "", // a blank follows each comma
		"Last; First\nDoe; Jane\n":                         "",
		"1,5\n2,7\n3,9\n":                                  "", // decimal commas
		"total\n1,5\n2,7\n":                                "",
		"id;city\n":                                        "", // a header alone shows nothing
		"id;city\n1;Graz\n2;Linz;x\n":                      "",
		"2026-11-15 10:11:12,345\n2026-11-15 10:11:13,1\n": "",
		"": "",
	} {
		require.Equal(t, want, dialect{delimiter: "^", quote: `"`}.divider([]byte(text)), text)
	}

	require.Equal(t, ",", dialect{delimiter: ";", quote: `"`, skip: 1}.divider([]byte("Report\nid,city\n1,Graz\n")))
}

func TestTitles(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]int{
		"a,b\n1,2\n3,4\n":                           0,
		"Report\n\na,b\n1,2\n3,4\n":                 2,
		"Report,,\nby Ann,,\na,b,c\n1,2,3\n4,5,6\n": 2,
		"Report\na,b\n1,2\n3\n":                     0, // the records differ in width, so the start of the table is unclear
		"Report\n\n":                                0,
		"one\ntwo\nthree\n":                         0,
		"n,\n1,\n2,\n":                              0,
		strings.Repeat("x\n", 30) + "a,b\n1,2\n":    0,
	} {
		require.Equal(t, want, dialect{delimiter: ",", quote: `"`}.titles([]byte(text)), text)
	}
}

func TestProse(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]bool{
		"Dear Ms Miller,\n\nthank you very much for your letter of last week.\nWe are glad to hear from you, and hope that you are well.\n\nYours sincerely,\nJohn Smith\n": true,
		"This is a text that somebody wrote.\nIt has some lines with words in them.\nNone of them is a row of a table.\nAnd here it ends for good now.\n":                   true,
		"review\nThis was a very good stay.\nThe room was small and we could not sleep.\nWe will come back with all of our friends.\n":                                      false,
		"id,comment\n1,This was a very good stay\n2,The room was small and we left\n3,We will come back with our friends\n4,Never again in my whole life\n":                 false,
		"First name,Last name\nAnn,Lee\nBob,Kay\nCem,Day\n":                     false,
		"What is your name?,How old are you?\nAnn,30\nBob,31\nCem,32\nDee,33\n": false,

		"Dear Ms Miller,\n\nthank you for your letter, which came last week.\nWe are glad, and hope that you are well.\n\nYours sincerely,\nJohn Smith\n": true,
		"name,note,\nAnn,a long remark about this person,\nBob,another long remark about him,\nCem,none,\n":                                               false,

		"Dear team,\n\nplease find the numbers attached, they look fine to me.\nKind regards\nM.\n": true,
	} {
		require.Equal(t, want, dialect{delimiter: ",", quote: `"`}.isProse([]byte(text)), text)
	}
}

func TestIsTotal(t *testing.T) {
	t.Parallel()

	for line, want := range map[string]bool{
		"Total,10\n": true, "TOTAL:,10\n": true, `"Grand total",10` + "\n": true, "Summe :,1\n": true, "Zwischensumme,3\n": true,
		"Totally,1\n": false, "Summer,2\n": false, "total\n": false, "North,Total\n": false, ",10\n": false, "\n": false,
	} {
		d := dialect{delimiter: ",", quote: `"`}
		require.Equal(t, want, d.isTotal([]byte(line)), line)
	}
}
