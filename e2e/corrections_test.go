package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// reviewed is a field of a record as its reviewer sees it.
type reviewed struct {
	Value              *string
	Corrected, Pending bool
	Quote, Flag, Said  string
	Page, From, To     int
}

type reviewedRecord struct {
	ID, File string
	Row      int
	Page     int
	Fields   map[string]reviewed
}

// flagged returns the records with a field in doubt, as "record: fields".
func (d *filled) flagged(id string) (list []string) {
	d.t.Helper()

	var page struct{ Data []reviewedRecord }

	d.call(http.MethodGet, "/ingestions/"+id+"/records?flagged=true", "").json(d.t, &page)

	for _, r := range page.Data {
		var fields []string

		for _, name := range []string{"colour", "item", "price", "stock"} {
			if r.Fields[name].Flag != "" {
				fields = append(fields, name)
			}
		}

		list = append(list, r.ID+": "+strings.Join(fields, " "))
	}

	return list
}

func (d *filled) correct(id, record, field, value string) (now reviewedRecord) {
	d.t.Helper()

	answer := d.call(http.MethodPut, "/ingestions/"+id+"/records/"+record+"/fields/"+field, `{"value": `+value+`}`)
	require.Equal(d.t, http.StatusOK, answer.status, answer.body)
	answer.json(d.t, &now)

	return now
}

func (d *filled) reload(id string, headers ...string) *answer {
	d.t.Helper()

	return d.call(http.MethodPost, "/ingestions/"+id+"/reload", "", headers...)
}

// reloaded reloads an ingestion and returns the new one.
func (d *filled) reloaded(id string) ingestion {
	d.t.Helper()

	done := d.wait(d.accepted(d.reload(id)).ID)
	require.Equal(d.t, "completed", done.Status, "%+v", done.Error)

	return done
}

// cells returns a column of the offers, by the number of the item.
func (d *filled) cells(column string) (list []string) {
	d.t.Helper()

	rows := d.offered()
	for item := 1; item <= len(rows); item++ {
		list = append(list, fmt.Sprint(rows[item][column]))
	}

	return list
}

const conflict = http.StatusConflict

// TestRecordsCorrected corrects flagged fields and loads the document again. Each load applies the corrections, replaces the rows instead of
// adding rows, and sends the model no request that it has answered before.
func TestRecordsCorrected(t *testing.T) {
	t.Parallel()

	m := newModel(t, readsOffers(func(item int, said map[string]any) {
		set := func(field, value string) {
			claim, _ := said[field].(map[string]any)
			claim["value"] = value
		}

		switch item {
		case 2:
			set("price", "7,77 EUR")
		case 7:
			set("stock", "in stock")
		}
	}))
	s := start(t, m.settings()...)
	key := s.newKey()
	d := newOffers(t, s, key.token("ada"))
	d.bearer = value(t, call(t, http.MethodPost, s.url+"/user/tokens", d.bearer, `{"name": "reviewer"}`))

	pages := offers(2, 5)
	document := strings.Join(pages, "\f")
	made := d.loaded(byModel, document)
	asked := len(m.requests())
	require.Equal(t, 1, asked)
	require.Equal(t, []string{"0-2: price", "0-7: stock"}, d.flagged(made.ID))

	showsText(t, d, made)
	refusesOthers(t, d, key, made)
	refusesValues(t, d, made)

	now := d.correct(made.ID, "0-2", "price", `"1.002,02 €"`)
	require.Equal(t, now, d.correct(made.ID, "0-2", "price", `"1002.02"`), "the same again")
	require.Equal(t, "1002.02", *now.Fields["price"].Value)
	require.True(t, now.Fields["price"].Corrected)
	require.True(t, now.Fields["price"].Pending)
	require.Empty(t, now.Fields["price"].Flag)
	require.Equal(t, "7,77 EUR", now.Fields["price"].Said)

	d.correct(made.ID, "0-3", "colour", `"red"`) // the model said nothing about it
	d.correct(made.ID, "0-4", "stock", "null")
	d.correct(made.ID, "0-5", "stock", `"1"`)
	require.Equal(t, []string{"0-7: stock"}, d.flagged(made.ID))

	undone := d.call(http.MethodDelete, "/ingestions/"+made.ID+"/records/0-5/fields/stock", "")
	require.Equal(t, http.StatusOK, undone.status, undone.body)
	require.NotContains(t, undone.body, "pending")
	require.Equal(t, undone.body, d.call(http.MethodDelete, "/ingestions/"+made.ID+"/records/0-5/fields/stock", "").body)

	require.Equal(t, "<nil>", d.cells("price")[1], "the row is as it was loaded")

	first := d.reloaded(made.ID)
	require.Len(t, m.requests(), asked, "the model is asked nothing")
	require.Contains(t, d.call(http.MethodGet, "/ingestions/"+first.ID, "").body, `"inputTokens":0,"outputTokens":0,"pages":2`)

	corrected := func() {
		t.Helper()

		require.Equal(t, []string{"1001.01", "1002.02", "1003.03", "1004.04", "1005.05", "1006.06", "1007.07", "1008.08", "1009.09", "1010.1"}, d.cells("price"))
		require.Equal(t, []string{"5", "10", "15", "<nil>", "25", "30", "<nil>", "40", "45", "50"}, d.cells("stock"))
		require.Equal(t, "red", d.cells("colour")[2])
	}
	corrected()

	require.Equal(t, []string{"0-7: stock"}, d.flagged(first.ID))

	shown := d.call(http.MethodGet, "/ingestions/"+first.ID+"/records?limit=2", "").body
	require.Contains(t, shown, `"value":"1002.02"`)
	require.NotContains(t, shown, "pending")
	require.Equal(t, conflict, d.reload(made.ID).status, "its rows are replaced")
	require.Contains(t, d.reload(made.ID).body, first.ID)

	first = racesReloads(t, d, first)
	corrected()
	require.Len(t, m.requests(), asked)

	d.correct(first.ID, "0-7", "stock", `"35"`)

	first = diesReloading(t, d, first)
	require.Equal(t, "35", d.cells("stock")[6])
	require.Empty(t, d.flagged(first.ID))
	require.Len(t, m.requests(), asked)

	first = readsAgain(t, d, m, first, document)
	first = commandsCorrect(t, d, first)
	refusesPlain(t, d, made)

	forgetsAll(t, d, first)
}

// commandsCorrect corrects and reloads with the client.
func commandsCorrect(t *testing.T, d *filled, of ingestion) ingestion {
	t.Helper()

	asked := d.s.signedIn(t, d.bearer)
	printed := asked.run("ingestion", "records", d.path(), of.ID, "--flagged")
	require.NotContains(t, printed, "0-7")

	done := asked.run("ingestion", "correct", d.path(), of.ID, "0-9", "stock=", "item=Bolt 9", "--remove", "price")
	require.Contains(t, done, "Corrected record 0-9. `quern ingestion reload")
	require.Contains(t, asked.run("ingestion", "records", d.path(), of.ID), "item, stock (not loaded)")

	for _, wrong := range [][]string{{"0-9"}, {"0-9", "stock"}, {"0-9", "stock=many"}, {"0-99", "stock=1"}} {
		require.NotZero(t, asked.try(append([]string{"ingestion", "correct", d.path(), of.ID}, wrong...)...).code, wrong)
	}

	require.Contains(t, asked.run("ingestion", "reload", d.path(), of.ID), "Loaded 10 rows of 1 file into")
	require.Equal(t, "<nil>", d.cells("stock")[8])

	var list struct{ Data []ingestion }

	d.call(http.MethodGet, "/ingestions?limit=1", "").json(t, &list)

	return list.Data[0]
}

// racesReloads asks for several reloads at once. One is made, and it is found again by its key.
func racesReloads(t *testing.T, d *filled, of ingestion) ingestion {
	t.Helper()

	answers := make([]*answer, 6)

	var group sync.WaitGroup

	for n := range answers {
		group.Go(func() { answers[n] = d.reload(of.ID, fmt.Sprintf("Idempotency-Key: reload-%d", n/3)) })
	}

	group.Wait()

	ids := map[string]bool{}

	for _, a := range answers {
		if a.status != conflict {
			ids[d.accepted(a).ID] = true
		}
	}

	require.Len(t, ids, 1, "%+v", answers)

	for id := range ids {
		of = d.wait(id)
	}

	require.Equal(t, "completed", of.Status, "%+v", of.Error)
	require.Len(t, d.offered(), 10)

	return of
}

// showsText checks that the characters of each field are those of its quote in the text of the page.
func showsText(t *testing.T, d *filled, made ingestion) {
	t.Helper()

	var (
		list struct{ Data []reviewedRecord }
		text struct {
			Pages []struct {
				Page int
				Text string
			}
		}
	)

	d.call(http.MethodGet, "/ingestions/"+made.ID+"/records", "").json(t, &list)
	require.Len(t, list.Data, 10)

	for n, r := range list.Data {
		d.call(http.MethodGet, "/ingestions/"+made.ID+"/records/"+r.ID+"/text", "").json(t, &text)
		require.Len(t, text.Pages, 1)
		require.Equal(t, 1+n/5, text.Pages[0].Page)

		for name, f := range r.Fields {
			require.Equal(t, f.Quote, string([]rune(text.Pages[0].Text)[f.From:f.To]), "%s %s", r.ID, name)
		}

		if n != 1 {
			price, err := strconv.ParseFloat(*r.Fields["price"].Value, 64)
			require.NoError(t, err)
			require.InDelta(t, float64(1001+n)+float64(1+n)/100, price, 1e-9, "the value as loaded")
		}
	}

	requireAbsent(t, d.call(http.MethodGet, "/ingestions/"+made.ID+"/records/0-11/text", ""))
	requireAbsent(t, d.call(http.MethodGet, "/ingestions/"+made.ID+"/records/1-1/text", ""))
}

// refusesOthers checks that only editors correct, and that strangers learn nothing.
func refusesOthers(t *testing.T, d *filled, key *signer, made ingestion) {
	t.Helper()

	viewer, stranger := key.token("vera"), key.token("sam")
	share(t, d.s, key.token("ada"), "datasets/"+d.path(), "vera", "viewer")

	for _, request := range [][2]string{
		{http.MethodPut, "/records/0-2/fields/price"}, {http.MethodDelete, "/records/0-2/fields/price"}, {http.MethodPost, "/reload"}, {http.MethodGet, "/records/0-2/text"},
	} {
		send := func(bearer, ingestion string) *answer {
			body := ""
			if request[0] == http.MethodPut {
				body = `{"value": "1"}`
			}

			return call(t, request[0], d.url()+"/ingestions/"+ingestion+request[1], bearer, body)
		}

		want := http.StatusForbidden
		if request[0] == http.MethodGet {
			want = http.StatusOK
		}

		require.Equal(t, want, send(viewer, made.ID).status, request)

		other := send(stranger, made.ID)
		requireAbsent(t, other, request)
		require.Equal(t, send(stranger, made.SessionID).comparable(made.SessionID, made.ID), other.comparable(), "what exists cannot be told from what does not")
	}
}

// refusesValues checks that a correction has the type of its column.
func refusesValues(t *testing.T, d *filled, made ingestion) {
	t.Helper()

	for field, body := range map[string]string{
		"price": `{"value": "cheap"}`, "stock": `{"value": "1.5"}`, "weight": `{"value": "1"}`, "item": `{"value": " "}`, "colour": `{}`,
	} {
		answer := d.call(http.MethodPut, "/ingestions/"+made.ID+"/records/0-2/fields/"+field, body)
		require.Equal(t, http.StatusUnprocessableEntity, answer.status, "%s: %s", field, answer.body)
	}

	answer := d.call(http.MethodPut, "/ingestions/"+made.ID+"/records/0-2/fields/price", `{"value": "3 USD"}`)
	require.Contains(t, answer.body, "another unit than the field, which is in EUR")
	requireAbsent(t, d.call(http.MethodPut, "/ingestions/"+made.ID+"/records/0-77/fields/price", `{"value": "1"}`))
	require.Equal(t, []string{"0-2: price", "0-7: stock"}, d.flagged(made.ID))
}

// diesReloading kills the service right after it accepted a reload.
func diesReloading(t *testing.T, d *filled, of ingestion) ingestion {
	t.Helper()

	next := d.accepted(d.reload(of.ID))
	d.s.kill()
	withDatabase(t, d.s.databaseURL, func(ctx context.Context, connection *pgx.Conn) {
		_, err := connection.Exec(ctx, `UPDATE leases SET until = now() - interval '1 second'`)
		require.NoError(t, err)
	})
	d.s.restart()

	done := d.wait(next.ID)
	require.Equal(t, "completed", done.Status, "%+v", done.Error)
	require.Len(t, d.offered(), 10)

	return done
}

// readsAgain loads the document again, another one, and the document with other fields.
func readsAgain(t *testing.T, d *filled, m *model, first ingestion, document string) ingestion {
	t.Helper()

	asked, repeated := len(m.requests()), byModel+`, "accept": ["all"]`
	removed := d.call(http.MethodPost, "/rows/delete", `{"condition": "true"}`)
	require.Equal(t, http.StatusOK, removed.status, removed.body)

	gone := d.reload(first.ID)
	require.Equal(t, conflict, gone.status, "rows that people removed do not come back")
	require.Contains(t, gone.body, "no longer in the dataset")

	tried := d.loaded(byModel+`, "dryRun": true`, document)
	require.Contains(t, fmt.Sprint(tried.Preview.Doubts), "A load sends nothing")

	again := d.loaded(repeated, document)
	require.Equal(t, "35", d.cells("stock")[6], "a correction is about the document, not about its load")
	require.Equal(t, "1002.02", d.cells("price")[1])
	require.Len(t, m.requests(), asked)

	// A correction that is removed is removed for all.
	require.Equal(t, http.StatusOK, d.call(http.MethodDelete, "/ingestions/"+again.ID+"/records/0-2/fields/price", "").status)
	require.Equal(t, []string{"0-2: price"}, d.flagged(again.ID))
	first = d.reloaded(again.ID)
	require.Equal(t, "<nil>", d.cells("price")[1])
	d.correct(first.ID, "0-2", "price", `"1002.02"`)

	// Another document has none of them.
	require.Equal(t, http.StatusOK, d.call(http.MethodPost, "/rows/delete", `{"condition": "true"}`).status)

	other := d.loaded(repeated, document+"\nThank you.")
	require.Equal(t, []string{"0-2: price", "0-7: stock"}, d.flagged(other.ID))
	require.NotContains(t, fmt.Sprint(other.Doubts), "Corrections")
	require.Len(t, m.requests(), asked+1)

	// The description of a field has changed, so everything is asked again, and a record that the model does not find any more is told.
	require.Equal(t, http.StatusOK, d.call(http.MethodPost, "/rows/delete", `{"condition": "true"}`).status)
	require.Equal(t, http.StatusCreated, d.call(http.MethodPut, "/inferDefinition",
		`{"schemaDefinition": {"item": "the name", "price": "for one, in EUR", "stock": "how many", "size": "of the item"}}`).status)

	first = d.loaded(repeated, document)
	require.Len(t, m.requests(), asked+2)
	require.Equal(t, "1002.02", d.cells("price")[1])
	require.Equal(t, "<nil>", d.cells("stock")[3])
	require.Contains(t, fmt.Sprint(first.Doubts), "that were not applied: 1.")
	require.Contains(t, fmt.Sprint(first.Doubts), "colour (page 1)")
	require.NotContains(t, fmt.Sprint(first.Doubts), "red", "a doubt has no value")

	return first
}

// refusesPlain checks that only documents that a model has read are loaded again.
func refusesPlain(t *testing.T, d *filled, made ingestion) {
	t.Helper()

	plain := newFilled(t, d.s, "ada", d.bearer)
	done := plain.loaded("", "n\n1\n")
	require.Equal(t, conflict, plain.reload(done.ID).status)
	requireAbsent(t, plain.reload(made.ID))
}

// forgetsAll erases the history: nothing that was read or said is left, but the rows.
func forgetsAll(t *testing.T, d *filled, first ingestion) {
	t.Helper()

	d.s.quernd("erase", "history", d.path())

	for _, table := range []string{"document_corrections", "document_pages", "document_records", "document_chunks"} {
		require.Zero(t, d.s.count(`SELECT count(*) FROM `+table), table)
	}

	require.Zero(t, d.s.count(`SELECT count(*) FROM ingestion_files WHERE document IS NOT NULL`))
	require.Equal(t, "1002.02", d.cells("price")[1], "the rows stay")

	gone := d.reload(first.ID)
	require.Equal(t, conflict, gone.status, gone.body)
	require.Contains(t, gone.body, "was erased. Upload it again.")
}
