package documents

import (
	"fmt"
	"time"
)

// invoiceSections is an invoice of a shop: three lines for each position, on a page of a browser.
func invoiceSections(s *sheet, size int) {
	s.letterhead()
	s.heading("Your invoice from {seller}", "Ihre Rechnung von {seller}")
	s.text("Order number: {order}", "Bestellnummer: {order}")
	s.text("Ordered: {ordered}", "Bestellt: {ordered}")
	s.text("Invoice number: {invoice_number}", "Rechnungsnummer: {invoice_number}")
	s.text("Invoice date: {invoice_date}", "Rechnungsdatum: {invoice_date}")
	s.text("To be paid until: {due}", "Zahlbar bis: {due}")

	for n := range []int{3, 8, 40}[size] {
		at := s.position(n)
		s.about(at, "{n}. {item} (article {article})", "{n}. {item} (Artikel {article})")
		s.about(at, "Quantity: {quantity}, each {unit_price_eur}", "Menge: {quantity}, je {unit_price_eur}")
		s.about(at, "Amount: {amount_eur}", "Betrag: {amount_eur}")
	}

	s.shared["sum"], s.shared["total"] = s.euros(s.total), s.euros(s.total+490)
	s.text("Sum: {sum}. Delivery: 4.90 EUR.", "Summe: {sum}. Versand: 4,90 EUR.")
	s.text("Total: {total}", "Gesamtbetrag: {total}")
}

// priceSentences is a list in sentences, as shops send it to their customers.
func priceSentences(s *sheet, size int) {
	day := time.Date(2026, time.Month(1+s.random.IntN(12)), 15, 0, 0, 0, 0, time.UTC)
	s.shared = values{"valid_from": s.date(day, inDigits), "before": s.date(day.AddDate(0, -6, 0), inDigits), "seller": same(pick(s.random, s.companies()))}
	s.heading("News from {seller}", "Neues von {seller}")
	s.text("The list of {before} is no longer valid. From {valid_from} on we charge:", "Die Liste vom {before} gilt nicht mehr. Ab {valid_from} berechnen wir:")

	for n := range []int{8, 20, 90}[size] {
		at := s.article(n)
		s.about(at, "- **{article}** {item}: {price_eur} (was €{before}), at least {minimum}, {weight_kg}", "- **{article}** {item}: {price_eur} (bisher {before} €), mindestens {minimum}, {weight_kg}")
	}

	s.table("Delivery\tWeight\tPrice", "Versand\tGewicht\tPreis")
	s.row(everyRecord, "Parcel\tup to 20 kg\t4.90", "Paket\tbis 20 kg\t4,90")
	s.row(everyRecord, "Pallet\tup to 600 kg\t89.00", "Palette\tbis 600 kg\t89,00")
}

// orderForm is a mail with a table, and an attached list with more items.
func orderForm(s *sheet, size int) {
	form := pick(s.random, []dateForm{inDigits, inWords})
	s.envelope()
	s.text("Good morning, please enter order {order_number}. It replaces {earlier}. The other items are in the attachment.",
		"Guten Morgen, bitte erfassen Sie Bestellung {order_number}. Sie ersetzt {earlier}. Die übrigen Positionen stehen im Anhang.")

	count := []int{2, 4, 12}[size]

	s.table("Item\tInstead of\tOrdered\tNot later than\tPrice limit", "Artikel\tStatt\tBestellt\tSpätestens\tPreisgrenze")

	for range count {
		s.ordered(form)
	}

	list := s.attach()
	list.columns = []float64{50, 250, 320, 400, -540}
	list.running = s.in("Annex to the order, page #", "Anlage zur Bestellung, Seite #")
	list.heading("Annex", "Anlage")
	list.table("Item\tInstead of\tOrdered\tNot later than\tPrice limit", "Artikel\tStatt\tBestellt\tSpätestens\tPreisgrenze")

	for range 2 * count {
		list.ordered(form)
	}

	s.records = list.records
}

// ordered writes the next item of an order into a table.
func (s *sheet) ordered(form dateForm) {
	const line = "{item}\t{before}\t{quantity}\t{deliver_by}\t{price_limit}"

	at := s.order(form)
	if _, limited := s.records[at]["price_limit"]; !limited {
		s.records[at]["price_limit"] = value{}
	}

	s.row(at, line, line)
}

// contractSchedule is a printed contract with its terms in short lines.
func contractSchedule(s *sheet, size int) {
	form := pick(s.random, []dateForm{inDigits, inWords})
	s.parties()
	s.running = s.in("Frame contract, page #", "Rahmenvertrag, Seite #")
	s.heading("Schedule of services", "Leistungsverzeichnis")
	s.text("{one}\tContract {contract_number}", "{one}\tVertrag {contract_number}")
	s.text("{other}\tsupersedes {frame}", "{other}\tersetzt {frame}")

	for n := range []int{3, 6, 15}[size] {
		at := s.duty(n, form)
		s.about(at, "Clause {clause}: {duty}", "Ziffer {clause}: {duty}")
		s.about(at, "Provided by {who} as of {begins}", "Erbracht durch {who} ab {begins}")

		if _, paid := s.records[at]["amount"]; paid {
			s.about(at, "Fee for each month: {amount}", "Monatliches Entgelt: {amount}")
		} else {
			s.about(at, "Fee: none", "Entgelt: keines")
		}

		if _, ends := s.records[at]["notice_days"]; ends {
			s.about(at, "Notice: {notice_days}", "Kündigung: mit {notice_days}")
		}

		s.about(at, "Penalty for each failure: {penalty}", "Vertragsstrafe je Ausfall: {penalty}")
	}

	s.text("{place}, {signed}", "{place}, {signed}")
}

// careerSections is a CV as plain text.
func careerSections(s *sheet, size int) {
	s.shared = values{"person": same(s.person()), "place": same(pick(s.random, s.places()))}
	s.heading("CV", "Lebenslauf")
	s.text("Name: {person}", "Name: {person}")
	s.text("Lives in {place}", "Wohnort: {place}")

	for _, at := range s.jobs([]int{4, 6, 12}[size]) {
		ends := "{ends}"
		if s.records[at]["ends"].said == "" {
			ends = "{until}"
		}

		s.about(at, "{employer} ({city})", "{employer} ({city})")
		s.about(at, "Position: {position}", "Stelle: {position}")
		s.about(at, "From {begins} to "+ends, "Von {begins} bis "+ends)

		if _, led := s.records[at]["team"]; led {
			s.about(at, "Led {team} people in 2 plants", "Leitung von {team} Personen in 2 Werken")
		}

		s.about(at, "Saved {saved} euros", "Einsparung: {saved} Euro")
	}

	s.text("Courses: {place}, 05/2015 to 06/2015", "Kurse: {place}, 05/2015 bis 06/2015")
}

// reportSentences is a printed report in prose: a section for each plant.
func reportSentences(s *sheet, size int) {
	s.shared = values{"company": same(pick(s.random, s.companies())), "day": s.date(s.day(), inWords)}
	s.running = s.in("Confidential. Page #", "Vertraulich. Seite #")
	s.heading("Production in 2026", "Produktion 2026") //nolint:misspell // German
	s.text("{company}, as of {day}.", "{company}, Stand {day}.")

	for _, plant := range s.places()[:2+2*size] {
		s.heading(fmt.Sprintf("Plant %s", plant), fmt.Sprintf("Werk %s", plant))

		for quarter := range []int{1, 2, 4}[size] {
			at := s.figures(plant, quarter+1)
			s.about(at, "In {period} the plant {plant} made {output_t}, after {before} in {last}. It used {energy_mwh}, and the scrap was {scrap_percent}. At the end {staff} people worked there.",
				"Im Zeitraum {period} stellte das Werk {plant} {output_t} her, nach {before} in {last}. Der Energieverbrauch lag bei {energy_mwh}, der Ausschuss bei {scrap_percent}. Am Ende waren es {staff} Mitarbeiter.")
		}
	}
}
