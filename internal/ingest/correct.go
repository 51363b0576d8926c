package ingest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"quern.dev/quern/internal/audit"
	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
	"quern.dev/quern/internal/engine"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/lake"
	"quern.dev/quern/internal/postgres"
	"quern.dev/quern/internal/record"
)

// storedRecord is a record with what is needed to correct it.
type storedRecord struct {
	Record

	document []byte // SHA-256; nil if it is not known
	anchor   *record.Anchor
}

// FieldPlace is where a field of a record is.
type FieldPlace struct {
	Ingestion uuid.UUID
	Record    Place
	Name      string
}

// correcting is a change of a field in a transaction that has locked its record.
type correcting struct {
	*Ingest

	tx      postgres.Tx
	dataset catalog.Dataset
	of      Ingestion
	name    string
	found   storedRecord
}

// Correct stores the value that a person gives a field of a record. An empty value means that the field has none. Every later load of the same
// document into the dataset applies the correction.
//
// Faults: NotFound, Forbidden, ValidationFailed, InvalidState if the record cannot be found again.
func (g *Ingest) Correct(ctx context.Context, who auth.Principal, at catalog.Path, of FieldPlace, value string) (Record, error) {
	return g.changeField(ctx, who, at, of, "records.correct", func(c *correcting) error {
		definition, err := g.definitionOf(ctx, c.tx, c.dataset)
		if err != nil {
			return err
		}

		fields, style := c.of.fieldsOf(c.dataset, definition)

		i := slices.IndexFunc(fields, func(f record.Field) bool { return f.Name == of.Name })

		switch {
		case i < 0:
			return fault.Invalid("fieldName", "is no field of the definition of the dataset")
		case c.found.document == nil || c.found.anchor == nil:
			return fault.New(fault.InvalidState, "The record was read by an earlier release, which did not keep its place. Load the documents again, then correct the record of the new ingestion.")
		case c.found.anchor.Page == 0:
			return fault.New(fault.InvalidState, "No quote of the record stands in the document, so the record could not be found again.")
		}

		if value != "" {
			if value, err = readCorrection(fields[i], style, c.of.typeOf(c.dataset, of.Name), value); err != nil {
				return err
			}
		}

		if err := c.forget(ctx); err != nil {
			return err
		}

		given := record.Correction{Anchor: *c.found.anchor, Key: map[string]string{}, Field: of.Name, Value: value}

		for _, f := range fields {
			if f.InKey {
				given.Key[f.Name] = c.found.Fields[f.Name].Value
			}
		}

		if err := insertCorrection(ctx, c.tx, c.of.table(), c.found.document, given, who.Account, g.Now()); err != nil {
			return err
		}

		c.found.set(of.Name, true, value)

		return nil
	})
}

// Uncorrect removes the correction of a field of a record, if there is one.
//
// Faults: NotFound, Forbidden.
func (g *Ingest) Uncorrect(ctx context.Context, who auth.Principal, at catalog.Path, of FieldPlace) (Record, error) {
	return g.changeField(ctx, who, at, of, "records.uncorrect", func(c *correcting) error {
		if !c.found.Fields[of.Name].Corrected {
			return nil
		}

		if err := c.forget(ctx); err != nil {
			return err
		}

		c.found.set(of.Name, false, "")

		return nil
	})
}

// set stores the correction of a field, or removes it.
func (r *storedRecord) set(name string, isCorrected bool, value string) {
	f := r.Fields[name]
	if f.Loaded == nil {
		f.Loaded = new(f.Now())
	}

	f.Corrected, f.Correction, f.Anchor = isCorrected, value, nil
	if f.Now() == *f.Loaded {
		f.Loaded = nil
	}

	r.Fields[name] = f
}

// forget deletes the correction of the field. An earlier load may have stored it with another place of the record, so forget tries both places.
func (c *correcting) forget(ctx context.Context) error {
	anchors := []*record.Anchor{c.found.anchor, c.found.Fields[c.name].Anchor}

	for _, a := range anchors {
		if a == nil {
			continue
		}

		if err := deleteCorrection(ctx, c.tx, c.of.table(), c.found.document, c.name, *a); err != nil {
			return err
		}
	}

	return nil
}

// changeField changes a field, if the caller is an editor of the dataset.
func (g *Ingest) changeField(ctx context.Context, who auth.Principal, at catalog.Path, of FieldPlace, action string, do func(c *correcting) error) (r Record, err error) {
	err = g.DB.InTx(ctx, func(tx postgres.Tx) error {
		c := &correcting{Ingest: g, tx: tx, name: of.Name}

		if c.dataset, err = g.Catalog.AllowDraft(ctx, tx, who, auth.Editor, at); err != nil {
			return err
		}

		if c.of, err = filesOf(ctx, tx, c.dataset, of.Ingestion); err != nil {
			return err
		}

		if c.found, err = lockRecord(ctx, tx, c.of, of.Record); err != nil {
			return err
		}

		if err := do(c); err != nil {
			return err
		}

		if err := updateRecord(ctx, tx, c.of, c.found.Record); err != nil {
			return err
		}

		r = c.found.Record
		entry := who.Audit(c.dataset.Account, g.Now(), action, c.dataset.Audit())
		entry.Detail = fmt.Sprintf("%s %s %s", of.Ingestion, r.Name(), of.Name)

		return audit.WriteTx(ctx, tx, entry)
	})

	return r, err
}

// readCorrection returns a value as it is loaded. column is the type of the column, "" if the column does not exist yet.
func readCorrection(f record.Field, style record.Style, column, value string) (string, error) {
	read, flag := record.Normalize(f, style, value)

	switch {
	case flag == record.WrongUnit:
		return "", fault.Invalid("value", "has another unit than the field, which is in "+f.Unit)
	case flag != "" && (f.Kind == record.Text || f.Kind == record.Open):
		return "", fault.Invalid("value", "has no text; null says that there is no value")
	case flag != "":
		return "", fault.Invalid("value", fmt.Sprintf("is not a %s, or can be read in two ways. Write a number without groups of digits and with a decimal point, 1.2340 for 1.234, and a date as 2026-03-04", column))
	}

	reason := ""

	switch precision, scale, isDecimal := lake.Type(column).Decimal(); {
	case column == engine.Bigint:
		if _, err := strconv.ParseInt(read, 10, 64); err != nil {
			reason = "is too large for a bigint"
		}
	case isDecimal:
		whole, fraction, _ := strings.Cut(strings.TrimPrefix(read, "-"), ".")
		if len(strings.TrimLeft(whole, "0")) > precision-scale || len(fraction) > scale {
			reason = "has too many digits for a " + column
		}
	}

	if reason != "" {
		return "", fault.Invalid("value", reason)
	}

	return read, nil
}

// correct applies the corrections that the dataset has for the documents.
func (w *working) correct(ctx context.Context) error {
	for n, p := range w.papers {
		var list []record.Correction

		err := w.DB.Do(ctx, func(q postgres.Querier) (err error) {
			list, err = selectCorrections(ctx, q, w.i.table(), p.document)

			return err
		})
		if err != nil {
			return err
		}

		left := p.records.Correct(list)
		p.anchors = p.records.Anchors()

		var places []string
		for _, c := range left[:min(len(left), listedNames)] {
			places = append(places, fmt.Sprintf("%s (page %d)", c.Field, c.Anchor.Page))
		}

		if len(left) > listedNames {
			places = append(places, "…")
		}

		if len(left) > 0 && p.rest == nil { // the others may stand in what a sample leaves out
			p.doubts = append(p.doubts, engine.Doubt{Message: fmt.Sprintf(
				"Corrections of %s that were not applied: %d. Their record does not stand where it stood, or the value does not have the type of the column: %s.",
				w.i.Files[n].Name, len(left), strings.Join(places, ", "))})
		}
	}

	return nil
}
