// Command empty is the smallest Go program. scripts/size.sh compares daemon with it.
package main

func main() {}
