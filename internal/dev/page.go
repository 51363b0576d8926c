package dev

import (
	"html/template"
	"net/http"
)

const badName = "A name has 1 to 31 small letters, digits and hyphens, and begins with a letter."

// Users are suggestions: any name will do.
func Users() []string { return []string{"ada", "bob", "carol"} }

// page is what the one page shows.
type page struct {
	Client  string // the program that asks
	Code    string // that it shows in its terminal
	AskCode bool
	Action  string
	Hidden  map[string]string
	Done    string // who has signed in
	Problem string
	Users   []string
}

// kept are the parameters of a request that the form has to send again.
func kept(r *http.Request, names ...string) map[string]string {
	fields := map[string]string{}
	for _, name := range names {
		fields[name] = r.FormValue(name)
	}

	return fields
}

func showPage(w http.ResponseWriter, shown page) {
	shown.Users = Users()
	writePage(w, http.StatusOK, shown)
}

func refusePage(w http.ResponseWriter, problem string) {
	writePage(w, http.StatusBadRequest, page{Problem: problem})
}

func writePage(w http.ResponseWriter, status int, shown page) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = loginPage.Execute(w, shown) // whoever does not read it has left
}

//nolint:gochecknoglobals // parsed once
var loginPage = template.Must(template.New("login").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Quern: sign in</title>
<style>
body { font: 1.1rem/1.5 system-ui, sans-serif; max-width: 30rem; margin: 3rem auto; padding: 0 1rem }
input, button { font: inherit; padding: .4rem .8rem }
input { width: 14rem }
.note { background: #fff3cd; color: #533f03; padding: .5rem 1rem }
</style>
</head>
<body>
<h1>Sign in to Quern</h1>
{{if .Problem}}<p role="alert">{{.Problem}}</p>
{{else if .Done}}<p>Signed in as <b>{{.Done}}</b>. You can close this window and go back to the terminal.</p>
{{else}}<p class="note">For development, on this machine alone: there are no passwords. Whoever you say you are, you are.</p>
{{if .Client}}<p><b>{{.Client}}</b> asks you to sign in.{{if .Code}} Its terminal must show the code <b>{{.Code}}</b>; if it does not, close this page.{{end}}</p>{{end}}
<form method="post" action="{{.Action}}">
{{range $name, $value := .Hidden}}<input type="hidden" name="{{$name}}" value="{{$value}}">
{{end}}{{if .AskCode}}<p><label>Code that the terminal shows<br><input name="user_code" required autofocus autocomplete="off"></label></p>
{{end}}<p><label>User name<br><input name="username" list="users" required pattern="[a-z][a-z0-9\-]{0,30}"{{if not .AskCode}} autofocus{{end}}></label></p>
<datalist id="users">{{range .Users}}<option value="{{.}}"></option>{{end}}</datalist>
<p><button>Sign in</button></p>
</form>
<p>Any name will do, such as {{range $n, $user := .Users}}{{if $n}}, {{end}}{{$user}}{{end}}.</p>
{{end}}</body>
</html>
`))
