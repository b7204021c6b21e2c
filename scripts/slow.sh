# Sourced. Tests of the command that take long and show nothing about a machine: "make test" runs them.
# shellcheck shell=sh disable=SC2034
slow="TestEnded|TestDocumentCommands|TestStrangeFiles|TestServeUsage|TestBench(Audio|Text|Interrupted)|TestWrittenRepaired|TestRepairMutants|TestLoadFails"
slow="$slow|TestLower(TriesIntegers|ExternalConstants.*|BesideDelegates|Methods|Reasons|Refuses)|TestTimesHaveOneNotation|TestCommandPages|TestTranscribe"
