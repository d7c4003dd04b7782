//go:build unix

package tracker

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
)

// maxAnswer bounds what is read of one answer, in bytes.
const maxAnswer = 4 << 20

// form is an issue form as Gitea has read it. The SDK's type is of no use: it
// takes a checkbox's options for strings, and fails on the objects they are.
type form struct {
	File  string      `json:"file_name"`
	Title string      `json:"title"`
	Body  []formField `json:"body"`
}

type formField struct {
	Type       string `json:"type"`
	ID         string `json:"id"`
	Attributes struct {
		Options []json.RawMessage `json:"options"`
	} `json:"attributes"`
}

// OpenForm opens an issue with one of the repository's forms: file is the
// form's name, answers are by the fields' ids, title follows the form's own.
// A checkbox is ticked by any answer. It is done as a browser does it, since
// the body is put together by Gitea's web pages and by no API.
func (r *Repo) OpenForm(ctx context.Context, as, file, title string, answers map[string]string) (number int64, err error) {
	number, err = r.openForm(ctx, as, file, title, answers)
	if err != nil {
		return 0, fmt.Errorf("as %s, fill in the form %s of %s: %w", as, file, r.FullName(), err)
	}
	return number, nil
}

func (r *Repo) openForm(ctx context.Context, as, file, title string, answers map[string]string) (int64, error) {
	forms, err := r.forms(ctx, as)
	if err != nil {
		return 0, err
	}
	i := slices.IndexFunc(forms, func(f form) bool { return path.Base(f.File) == file })
	if i < 0 {
		return 0, fmt.Errorf("there is none that Gitea could read")
	}
	values, err := forms[i].values(answers)
	if err != nil {
		return 0, err
	}
	values.Set("title", forms[i].Title+title)
	browser, err := r.server.logIn(ctx, as)
	if err != nil {
		return 0, err
	}
	return r.submit(ctx, browser, values)
}

// forms reads the repository's forms through the API.
func (r *Repo) forms(ctx context.Context, as string) ([]form, error) {
	account, err := r.server.Account(ctx, as)
	if err != nil {
		return nil, err
	}
	url := r.server.URL + "/api/v1/repos/" + r.FullName() + "/issue_templates"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "token "+account.Token)
	var forms []form
	if err := readJSON(r.server.http, req, &forms); err != nil {
		return nil, fmt.Errorf("read the forms: %w", err)
	}
	return forms, nil
}

// submit sends the form's page in and returns the new issue's number, which
// the page is told to go to.
func (r *Repo) submit(ctx context.Context, browser *http.Client, values url.Values) (int64, error) {
	req, err := postForm(ctx, r.URL()+"/issues/new", values)
	if err != nil {
		return 0, err
	}
	var next struct{ Redirect string }
	if err := readJSON(browser, req, &next); err != nil {
		return 0, fmt.Errorf("submit: %w", err)
	}
	number, err := strconv.ParseInt(path.Base(next.Redirect), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("submit: no issue came of it")
	}
	return number, nil
}

// values are the page's fields: an option is sent as its place.
func (f form) values(answers map[string]string) (url.Values, error) {
	values := url.Values{"template-file": {f.File}}
	for id, answer := range answers {
		i := slices.IndexFunc(f.Body, func(field formField) bool { return field.ID == id })
		if i < 0 {
			return nil, fmt.Errorf("it has no field %s", id)
		}
		name := "form-field-" + id
		switch field := f.Body[i]; field.Type {
		case "checkboxes":
			for place := range field.Attributes.Options {
				values.Set(name+"-"+strconv.Itoa(place), "on")
			}
		case "dropdown":
			place := slices.IndexFunc(field.Attributes.Options, func(raw json.RawMessage) bool {
				var option string
				return json.Unmarshal(raw, &option) == nil && option == answer
			})
			if place < 0 {
				return nil, fmt.Errorf("its field %s does not offer %q", id, answer)
			}
			values.Set(name, strconv.Itoa(place))
		default:
			values.Set(name, answer)
		}
	}
	return values, nil
}

// logIn gives a client with an account's session in the web pages.
func (s *Server) logIn(ctx context.Context, login string) (*http.Client, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	browser := &http.Client{
		Timeout: s.http.Timeout, Jar: jar,
		// Where Gitea sends us next is a page we have no use for.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	req, err := postForm(ctx, s.URL+"/user/login", url.Values{"user_name": {login}, "password": {s.Password}})
	if err != nil {
		return nil, err
	}
	resp, err := browser.Do(req)
	if err != nil {
		return nil, fmt.Errorf("log in: %w", err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusSeeOther {
		return nil, fmt.Errorf("log in: status %d", resp.StatusCode)
	}
	return browser, nil
}

func postForm(ctx context.Context, to string, values url.Values) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, strings.NewReader(values.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return req, nil
}

// readJSON sends a request and reads its answer, which must be 200.
func readJSON(client *http.Client, req *http.Request, into any) error {
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(into)
}
