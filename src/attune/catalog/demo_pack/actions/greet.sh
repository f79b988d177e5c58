# The parameters arrive on standard input as NAME='value' lines, quoted so that a shell may read them.
. /dev/stdin
echo "Hello $customer, thank you for ordering $item!"
