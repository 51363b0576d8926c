package documents

import (
	"fmt"
	"time"
)

const (
	varchar = "varchar"
	double  = "double"
	bigint  = "bigint"
	date    = "date"
)

func invoices() Kind {
	return Kind{
		Name: "invoice", About: "Positions of invoices: one record for each position that was delivered, without carried sums and totals",
		Fields: []Field{
			{"invoice_number", "number of the invoice, the same for all of its positions", varchar},
			{"invoice_date", "day of the invoice, not of the order or the delivery", date},
			{"item", "what was delivered", varchar},
			{"quantity", "how much was delivered", double},
			{"unit_price", "price of one unit, in EUR", double},
			{"amount", "price of the position, in EUR", double},
		},
		layouts: [layouts]layout{{asPDF, invoiceTable}, {asHTML, invoiceSections}},
	}
}

// units returns the names of the units of goods in the language of the sheet.
func (s *sheet) units() []string {
	return []string{s.in("pcs", "Stk"), s.in("boxes", "Kartons"), "kg", s.in("rolls", "Rollen"), "m"}
}

// position adds the next position of an invoice. Some positions repeat the price or the item of the one before.
func (s *sheet) position(n int) int {
	item, price, quantity := pick(s.random, s.goods()), 15+s.random.IntN(9000), 1+s.random.IntN(40)

	if n > 0 && s.random.IntN(4) == 0 {
		item = s.records[len(s.records)-1]["item"].said
	}

	if n > 0 && s.random.IntN(5) == 0 {
		price = s.lastPrice
	}

	if s.random.IntN(12) == 0 {
		price += 100000
	}

	s.lastPrice = price
	amount := price * quantity
	s.total += amount

	return s.state(values{
		"n": same(decimal(n + 1)), "article": same(fmt.Sprintf("%d-%03d", 10+s.random.IntN(30), s.random.IntN(1000))), "item": same(item),
		"quantity": s.whole(quantity).with("", " "+pick(s.random, s.units())), "unit_price": s.hundredths(price), "amount": s.hundredths(amount),
		"unit_price_eur": s.euros(price), "amount_eur": s.euros(amount),
	})
}

// letterhead sets the values that all positions of an invoice share.
func (s *sheet) letterhead() {
	day := s.day()
	number := 1000 + s.number
	form := pick(s.random, []dateForm{inDigits, inWords, monthsFirst})
	s.shared = values{
		"invoice_number": same(fmt.Sprintf("R-2026-%d", number)), "order": same(fmt.Sprintf("R-2025-%d", number)), "invoice_date": s.date(day, form),
		"ordered": s.date(day.AddDate(0, 0, -20), form), "delivered": s.date(day.AddDate(0, 0, -1), form), "due": s.date(day.AddDate(0, 0, 14), form),
		"seller": same(s.companies()[0]), "buyer": same(pick(s.random, s.companies()[1:])), "place": same(pick(s.random, s.places())),
	}
}

// invoiceTable is the usual printed invoice: a table over several pages, with a sum that is carried.
func invoiceTable(s *sheet, size int) {
	s.columns = []float64{50, 80, 140, -370, -455, -545}
	s.letterhead()
	s.running = s.in("Altfield Tools Ltd, 12 Mill Lane, Altfield. Account 0049 1200 3400. Page #", "Altfeld Werkzeuge GmbH, Mühlgasse 12, Altfeld. Konto 0049 1200 3400. Seite #")

	s.text("{seller}\tInvoice no. {invoice_number}", "{seller}\tRechnung Nr. {invoice_number}")
	s.text("12 Mill Lane\tDate of invoice: {invoice_date}", "Mühlgasse 12\tRechnungsdatum: {invoice_date}")
	s.text("Altfield\tYour order {order} of {ordered}", "Altfeld\tIhre Bestellung {order} vom {ordered}")
	s.text("{buyer}\tDelivered on {delivered}", "{buyer}\tGeliefert am {delivered}")
	s.heading("Invoice", "Rechnung")
	s.text("We thank you for your order and charge for the delivery to {place} as follows. All prices are in euros and without tax.",
		"Wir danken für Ihren Auftrag und berechnen für die Lieferung nach {place} wie folgt. Alle Preise verstehen sich in Euro und ohne Steuer.")
	s.table("Pos\tArticle\tDescription\tQuantity\tUnit price\tAmount", "Pos\tArtikel\tBezeichnung\tMenge\tEinzelpreis\tBetrag")

	for n := range []int{4, 9, 58}[size] {
		const line = "{n}\t{article}\t{item}\t{quantity}\t{unit_price}\t{amount}"

		at := s.position(n)
		s.row(at, line, line)
	}

	s.shared["sum"], s.shared["tax"], s.shared["total"] = s.euros(s.total), s.euros(s.total*19/100), s.euros(s.total+s.total*19/100)
	s.text("Sum {sum}, tax of 19 % {tax}, to pay {total}.", "Summe {sum}, Steuer 19 % {tax}, zu zahlen {total}.")
	s.text("Please pay until {due}. Within 10 days we grant a discount of 2 %.", "Bitte zahlen Sie bis {due}. Innerhalb von 10 Tagen gewähren wir 2 % Skonto.")
}

func priceLists() Kind {
	return Kind{
		Name: "prices", About: "Offers of price lists: one record for each article",
		Fields: []Field{
			{"valid_from", "day from which the list is valid", date},
			{"article", "number of the article", varchar},
			{"item", "name of the article", varchar},
			{"price", "price of one unit now, in EUR", double},
			{"weight_kg", "weight of one unit", double},
			{"minimum", "smallest quantity that can be ordered", bigint},
		},
		layouts: [layouts]layout{{asPDF, priceTable}, {asMarkdown, priceSentences}},
	}
}

// article adds the next article of a price list.
func (s *sheet) article(n int) int {
	price := 20 + s.random.IntN(5000)
	if s.random.IntN(10) == 0 {
		price += 120000
	}

	grams := 5 * (1 + s.random.IntN(180))

	weight := value{decimal(grams) + " g", canonical(fmt.Sprintf("%d.%03d", grams/1000, grams%1000))}
	if s.random.IntN(3) == 0 {
		weight = s.tenths(11+s.random.IntN(300)).with("", " kg")
	}

	return s.state(values{
		"article": same(fmt.Sprintf("%d-%03d", 10+n/10, 7*n%1000)), "item": same(pick(s.random, s.goods())), "price": s.hundredths(price), "price_eur": s.euros(price),
		"before": s.hundredths(price + 5 + s.random.IntN(60)), "weight_kg": weight, "minimum": s.whole(pick(s.random, []int{1, 10, 50, 100, 2500})).with("", s.in(" pcs", " Stk")),
	})
}

// priceTable is a printed list with groups, and last year's prices beside those of this one.
func priceTable(s *sheet, size int) {
	s.columns = []float64{50, -165, 205, -400, -470, -545}
	day := time.Date(2026, time.Month(1+s.random.IntN(12)), 1, 0, 0, 0, 0, time.UTC)
	s.shared = values{"valid_from": s.date(day, inWords), "until": s.date(day.AddDate(0, 6, 0), inWords), "seller": same(pick(s.random, s.companies()))}
	s.running = s.in("Prices without tax. Subject to change. Page #", "Preise ohne Steuer. Änderungen vorbehalten. Seite #")

	s.heading("Price list of {seller}", "Preisliste {seller}")
	s.text("Valid from {valid_from} until {until} at the latest. Prices per piece in euros.", "Gültig ab {valid_from}, längstens bis {until}. Preise je Stück in Euro.")

	groups := []string{s.in("Screws and nuts", "Schrauben und Muttern"), s.in("Tools", "Werkzeug"), s.in("Paint and glue", "Farben und Kleber")}
	count := []int{3, 8, 45}[size]

	for g, name := range groups {
		s.heading(name, name)
		s.table("Article\tWeight\tName\tPrice before\tPrice now\tMinimum", "Artikel\tGewicht\tName\tPreis bisher\tPreis neu\tMindestmenge")

		for n := range count {
			const line = "{article}\t{weight_kg}\t{item}\t{before}\t{price}\t{minimum}"

			at := s.article(g*count + n)
			s.row(at, line, line)
		}
	}

	s.text("Orders below 50 euros cost 4.90 euros more. Delivery takes 3 days.", "Bestellungen unter 50 Euro kosten 4,90 Euro mehr. Die Lieferung dauert 3 Tage.")
}

func mails() Kind {
	return Kind{
		Name: "mail", About: "Orders in mails: one record for each item that is ordered now, not of earlier messages",
		Fields: []Field{
			{"order_number", "number of the order", varchar},
			{"item", "what is ordered", varchar},
			{"quantity", "how many are ordered", bigint},
			{"deliver_by", "last day for the delivery of the item", date},
			{"price_limit", "highest price of one unit, in EUR, if there is one", double},
		},
		layouts: [layouts]layout{{asMail, orderLetter}, {asMail, orderForm}},
	}
}

// order adds the next item of an order.
func (s *sheet) order(form dateForm) int {
	quantity := 5 * (1 + s.random.IntN(60))
	day := s.day()
	v := values{
		"item": same(pick(s.random, s.goods())), "quantity": s.whole(quantity).with("", s.in(" pcs", " Stück")), "deliver_by": s.date(day, form),
		"before": s.whole(quantity+10).with("", s.in(" pcs", " Stück")), "was": s.date(day.AddDate(0, -1, 0), form),
	}

	if s.random.IntN(3) > 0 {
		v["price_limit"] = s.euros(100 + s.random.IntN(9000))
	}

	return s.state(v)
}

func (s *sheet) envelope() {
	s.shared = values{
		"order_number": same(fmt.Sprintf("B-%d", 26000+s.number)), "earlier": same(fmt.Sprintf("B-%d", 25000+s.number)),
		"from": same(s.in("buying@northgrove.test", "einkauf@nordhain.test")), "to": same(s.in("sales@altfield.test", "verkauf@altfeld.test")),
		"sent": same(s.day().Format("Mon, 02 Jan 2006 15:04:05 +0000")),
	}
	s.text("From: {from}\tTo: {to}\tDate: {sent}\tSubject: Order {order_number}", "From: {from}\tTo: {to}\tDate: {sent}\tSubject: Bestellung {order_number} für das Lager")
}

// orderLetter is a mail in sentences, with the message that it answers below.
func orderLetter(s *sheet, size int) {
	form := pick(s.random, []dateForm{inDigits, inWords, monthsFirst})
	s.envelope()
	s.text("Dear colleagues,", "Guten Tag,")
	s.text("thank you for the samples. We now order the following and ask you to confirm every item.",
		"vielen Dank für die Muster. Wir bestellen nun wie folgt und bitten um Bestätigung jeder Position.")

	count := []int{3, 6, 24}[size]

	for range count {
		at := s.order(form)
		english, german := "{quantity} of {item}, delivered until {deliver_by} at the latest", "{quantity} {item}, Lieferung spätestens bis zum {deliver_by}"

		if _, limited := s.records[at]["price_limit"]; limited {
			english, german = english+", for at most {price_limit} each", german+", zu höchstens {price_limit} je Einheit"
		}

		s.about(at, english+".", german+".")
	}

	s.text("Please send the invoice to the address that you know.", "Bitte senden Sie die Rechnung an die bekannte Adresse.")
	s.text("Kind regards", "Mit freundlichen Grüßen")
	s.text("> On the order {earlier} you wrote:", "> Zur Bestellung {earlier} schrieben Sie:")

	for n := range min(count, 4) {
		// What was ordered before is said again, with other numbers, and belongs to no record.
		v := s.records[n]
		s.text("> "+v["before"].said+" of "+v["item"].said+" until "+v["was"].said, "> "+v["before"].said+" "+v["item"].said+" bis "+v["was"].said)
	}
}
