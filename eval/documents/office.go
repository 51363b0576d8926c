package documents

import (
	"fmt"
	"time"
)

func contracts() Kind {
	return Kind{
		Name: "contract", About: "Duties in contracts: one record for each numbered clause that says who does what",
		Fields: []Field{
			{"contract_number", "number of the contract", varchar},
			{"clause", "number of the clause", varchar},
			{"duty", "what is to be done", varchar},
			{"begins", "first day of the duty", date},
			{"amount", "what is paid for it, in EUR, if anything is", double},
			{"notice_days", "days of notice, if the clause has them", bigint},
		},
		layouts: [layouts]layout{{asWord, contractClauses}, {asPDF, contractSchedule}},
	}
}

// duty adds the next clause of a contract.
func (s *sheet) duty(n int, form dateForm) int {
	duties := []string{
		"maintenance of the conveyor", "cleaning of the halls", "storage of the pallets", "inspection of the lifts", "collection of the waste paper", "supply of packing material",
		"repair of the forklifts", "calibration of the scales", "delivery of the spare parts", "heating of the halls",
	}
	if s.language == German {
		duties = []string{
			"Wartung der Förderanlage", "Reinigung der Hallen", "Lagerung der Paletten", "Prüfung der Aufzüge", "Abholung des Altpapiers", "Lieferung von Packmaterial",
			"Reparatur der Stapler", "Kalibrierung der Waagen", "Lieferung der Ersatzteile", "Heizung der Hallen",
		}
	}

	v := values{
		"clause": same(fmt.Sprintf("%d.%d", 2+n/4, 1+n%4)), "duty": same(duties[n%len(duties)]), "begins": s.date(s.day(), form),
		"penalty": s.euros(10000 + s.random.IntN(90000)), "who": same(pick(s.random, s.companies()[:2])),
	}

	if s.random.IntN(4) > 0 {
		v["amount"] = s.euros(5000 * (1 + s.random.IntN(900)))
	}

	if s.random.IntN(2) > 0 {
		days := pick(s.random, []int{14, 30, 60, 90})
		v["notice_days"] = s.whole(days).with("", s.in(" days", " Tagen"))
	}

	return s.state(v)
}

func (s *sheet) parties() {
	day := s.day()
	s.shared = values{
		"contract_number": same(fmt.Sprintf("V/%d/26", 400+s.number)), "frame": same(fmt.Sprintf("V/%d/25", 400+s.number)), "one": same(s.companies()[0]), "other": same(s.companies()[1]),
		"signed": s.date(day, inWords), "place": same(pick(s.random, s.places())),
	}
}

// contractClauses is a contract in prose, over several pages.
func contractClauses(s *sheet, size int) {
	form := pick(s.random, []dateForm{inDigits, inWords})
	s.parties()
	s.heading("Service contract", "Dienstleistungsvertrag")
	s.text("Contract no. {contract_number}, which replaces {frame}, between {one} and {other}.",
		"Vertrag Nr. {contract_number}, der {frame} ersetzt, zwischen {one} und {other}.")

	for n := range []int{4, 7, 16}[size] {
		if n%4 == 0 {
			s.heading(fmt.Sprintf("%d. Services", 2+n/4), fmt.Sprintf("%d. Leistungen", 2+n/4))
			s.text("The parties agree on the following services. Words in capital letters have the meaning of the annex.",
				"Die Parteien vereinbaren die folgenden Leistungen. Wörter in Großbuchstaben haben die Bedeutung der Anlage.")
		}

		at := s.duty(n, form)
		english := "{clause} {who} undertakes the {duty} from {begins}."
		german := "{clause} {who} übernimmt ab dem {begins} die {duty}."

		if _, paid := s.records[at]["amount"]; paid {
			english += " The remuneration is {amount} for each quarter; it is due in advance."
			german += " Die Vergütung beträgt {amount} je Quartal und ist im Voraus fällig."
		}

		if _, ends := s.records[at]["notice_days"]; ends {
			english += " Each party may end this service with a notice of {notice_days}."
			german += " Jede Partei kann diese Leistung mit einer Frist von {notice_days} kündigen."
		}

		s.about(at, english+" For each failure a penalty of {penalty} is due.", german+" Für jeden Ausfall ist eine Vertragsstrafe von {penalty} fällig.")
	}

	s.heading("Final provisions", "Schlussbestimmungen")
	s.text("Changes of this contract must be in writing. If a provision is void, the others remain valid. Place of jurisdiction is {place}. Signed on {signed}.",
		"Änderungen dieses Vertrags bedürfen der Schriftform. Ist eine Bestimmung unwirksam, bleiben die übrigen gültig. Gerichtsstand ist {place}. Unterschrieben am {signed}.")
}

func careers() Kind {
	return Kind{
		Name: "cv", About: "Jobs in CVs: one record for each job, not for schools and courses",
		Fields: []Field{
			{"person", "name of the person", varchar},
			{"employer", "company", varchar},
			{"position", "what the person was there", varchar},
			{"begins", "first month, as the CV writes it", varchar},
			{"ends", "last month, as the CV writes it; empty if the job goes on", varchar},
			{"team", "how many people the person led, if the CV says so", bigint},
		},
		layouts: [layouts]layout{{asWord, careerTable}, {asText, careerSections}},
	}
}

// jobs adds the jobs of a person, the last one first.
func (s *sheet) jobs(count int) (all []int) {
	positions := []string{"Buyer", "Senior buyer", "Shift leader", "Warehouse clerk", "Head of logistics", "Production planner", "Quality inspector", "Project leader"}
	if s.language == German {
		positions = []string{"Einkäufer", "Leitender Einkäufer", "Schichtleiter", "Lagerist", "Leiter Logistik", "Produktionsplaner", "Qualitätsprüfer", "Projektleiter"}
	}

	end := time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC)

	for n := range count {
		begin := end.AddDate(-s.random.IntN(3), -2-s.random.IntN(9), 0)
		v := values{
			"employer": same(s.companies()[(n+s.number)%len(s.companies())]), "position": same(pick(s.random, positions)), "begins": s.month(begin), "ends": s.month(end), "city": same(pick(s.random, s.places())),
			"saved": s.whole(10000 + s.random.IntN(90000)),
		}

		if n == 0 {
			v["ends"] = value{}
			v["until"] = same(s.in("today", "heute"))
		} else {
			v["until"] = v["ends"]
		}

		if s.random.IntN(2) == 0 {
			v["team"] = s.whole(3 + s.random.IntN(40))
		}

		all = append(all, s.state(v))
		end = begin.AddDate(0, -s.random.IntN(2), 0)
	}

	return all
}

// careerTable is a CV whose jobs are in a table without borders, with what was done below each.
func careerTable(s *sheet, size int) {
	s.shared = values{"person": same(s.person()), "place": same(pick(s.random, s.places())), "born": s.date(time.Date(1980+s.random.IntN(15), 4, 12, 0, 0, 0, 0, time.UTC), inWords)}
	s.heading("Curriculum vitae", "Lebenslauf")
	s.text("{person}, born on {born} in {place}", "{person}, geboren am {born} in {place}")
	s.heading("Work", "Berufserfahrung")

	for _, at := range s.jobs([]int{3, 5, 11}[size]) {
		ends := "{ends}"
		if s.records[at]["ends"].said == "" {
			ends = "{until}"
		}

		s.about(at, "{begins} – "+ends+"\t{position}, {employer}, {city}", "{begins} – "+ends+"\t{position}, {employer}, {city}")

		if _, led := s.records[at]["team"]; led {
			s.about(at, "Led a team of {team} people and saved {saved} euros in each year.", "Führung von {team} Mitarbeitern, Einsparung von {saved} Euro im Jahr.")
		} else {
			s.about(at, "Responsible for orders of 3 plants; saved {saved} euros in each year.", "Zuständig für Bestellungen von 3 Werken; Einsparung von {saved} Euro im Jahr.")
		}
	}

	s.heading("Schools", "Ausbildung")
	s.text("09/1996 – 07/2002\tSecondary school, {place}", "09/1996 – 07/2002\tRealschule, {place}")
}

func reports() Kind {
	return Kind{
		Name: "report", About: "Figures of plants in reports: one record for each plant and quarter of this year",
		Fields: []Field{
			{"plant", "name of the plant", varchar},
			{"period", "quarter, as the report writes it", varchar},
			{"output_t", "output of the quarter", double},
			{"energy_mwh", "energy of the quarter", double},
			{"scrap_percent", "share of scrap", double},
			{"staff", "people at the end of the quarter", bigint},
		},
		layouts: [layouts]layout{{asHTML, reportTables}, {asPDF, reportSentences}},
	}
}

// figures adds what a plant did in a quarter.
func (s *sheet) figures(plant string, quarter int) int {
	output := 800 + s.random.IntN(4000)
	energy := s.tenths(900+s.random.IntN(9000)).with("", " MWh")

	if s.random.IntN(4) == 0 {
		kwh := 90000 + 500*s.random.IntN(1000)
		energy = value{s.whole(kwh).said + " kWh", canonical(fmt.Sprintf("%d.%03d", kwh/1000, kwh%1000))}
	}

	return s.state(values{
		"plant": same(plant), "period": same(fmt.Sprintf("Q%d/2026", quarter)), "output_t": s.whole(output).with("", " t"), "energy_mwh": energy,
		"scrap_percent": s.tenths(3+s.random.IntN(90)).with("", " %"), "staff": s.whole(40 + s.random.IntN(300)), "before": s.whole(output-25).with("", " t"),
		"last": same(fmt.Sprintf("Q%d/2025", quarter)),
	})
}

// reportTables is a report with a table for each quarter and sentences about last year.
func reportTables(s *sheet, size int) {
	s.shared = values{"company": same(pick(s.random, s.companies())), "day": s.date(s.day(), inWords)}
	s.heading("Report on the plants", "Bericht über die Werke")
	s.text("{company}, {day}. The figures are provisional.", "{company}, {day}. Die Zahlen sind vorläufig.")

	for quarter := range []int{1, 2, 4}[size] {
		title := fmt.Sprintf("Q%d/2026", quarter+1)
		s.heading("Quarter "+title, "Quartal "+title)
		s.table("Plant\tPeriod\tOutput\tSame quarter of last year\tEnergy\tScrap\tStaff", "Werk\tZeitraum\tProduktion\tVorjahresquartal\tEnergie\tAusschuss\tMitarbeiter") //nolint:misspell // German

		for _, plant := range s.places()[:4+2*size] {
			const line = "{plant}\t{period}\t{output_t}\t{before}\t{energy_mwh}\t{scrap_percent}\t{staff}"

			at := s.figures(plant, quarter+1)
			s.row(at, line, line)
		}

		s.text("In the same quarter of last year the plants made 1,180 t with 3.1 % of scrap and 212 people.",
			"Im Vorjahresquartal stellten die Werke 1.180 t mit 3,1 % Ausschuss und 212 Mitarbeitern her.")
	}
}
