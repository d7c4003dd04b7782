package wire

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestRetryAfter also covers case 15's delayed one.
func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"":                              0,
		"30":                            30 * time.Second,
		" 1 ":                           time.Second,
		"-5":                            0,
		"soon":                          0,
		"99999999999999999999":          0,
		"Wed, 01 Jul 2026 12:00:45 GMT": 45 * time.Second,
		"Wed, 01 Jul 2026 11:00:00 GMT": 0,
	} {
		if got := (&Exchange{Header: http.Header{"Retry-After": {value}}}).RetryAfter(now); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
	// The server's clock, not ours, is what its date is meant by.
	h := http.Header{"Retry-After": {"Wed, 01 Jul 2026 15:00:10 GMT"}, "Date": {"Wed, 01 Jul 2026 15:00:00 GMT"}}
	if got := (&Exchange{Header: h}).RetryAfter(now); got != 10*time.Second {
		t.Errorf("by the server's clock: %v", got)
	}
}

func TestThreadNumber(t *testing.T) {
	for page, want := range map[string]int64{
		"http://g/o/r/issues/12": 12, "http://g/o/r/pulls/3": 3, "http://g/o/r/issues/12#issuecomment-4": 12,
		"": 0, "http://g/o/r": 0, "http://g/o/r/issues/-4": 0, ":": 0,
	} {
		if got := ThreadNumber(page); got != want {
			t.Errorf("%q: %d, want %d", page, got, want)
		}
	}
}

func TestBaseURL(t *testing.T) {
	for raw, want := range map[string]string{
		"https://git.example.org":         "https://git.example.org",
		" https://git.example.org/gitea/": "https://git.example.org/gitea",
		"http://[::1]:3000":               "http://[::1]:3000",
		"git.example.org":                 "",
		"https://":                        "",
		"ftp://git.example.org":           "",
		"https://u:hunter2@g.example":     "",
		"https://git.example.org/?a=b":    "",
		"https://git.example.org/#a":      "",
		"https://hunter2\x7f:x":           "",
		"":                                "",
	} {
		got, err := BaseURL(raw)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", raw, got, err)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: the error repeats it: %v", raw, err)
		}
	}
}

func TestALocationIsItsPathAlone(t *testing.T) {
	for _, tt := range []struct {
		status         int
		location, want string
	}{
		{301, "https://evil.example/repositories/7?a=b", "/repositories/7"},
		{307, "/repositories/7/issues", "/repositories/7/issues"},
		{301, "", ""},
		{301, "http://a b:x", ""},
		{304, "/x", ""},
		{200, "/x", ""},
	} {
		ex := &Exchange{Status: tt.status, Header: http.Header{"Location": {tt.location}}}
		if got := ex.Location(); got != tt.want {
			t.Errorf("%d to %q: %q, want %q", tt.status, tt.location, got, tt.want)
		}
	}
}
