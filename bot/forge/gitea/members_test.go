package gitea

import "testing"

func TestReadVersion(t *testing.T) {
	for text, want := range map[string][3]int{
		"1.26.0":                 {1, 26, 1},
		"1.27.0+dev-12-gabcdef0": {1, 27, 1},
		"v1.20.0-rc1":            {1, 20, 1},
		"11.0.1+gitea-1.22.0":    {1, 22, 1},
		"1.19.3-0+gitea-1.19.3":  {1, 19, 1},
		"development":            {},
		"":                       {},
		"1":                      {1, 0, 0},
	} {
		major, minor, ok := readVersion(text)
		if major != want[0] || minor != want[1] || ok != (want[2] == 1) {
			t.Errorf("%q: %d, %d, %v", text, major, minor, ok)
		}
	}
}
