-- inner2
SELECT b.price, a.seller
FROM bids [RANGE 5 SECONDS] b
JOIN auctions [RANGE 8 SECONDS] AS a ON a.id = b.auction
WHERE b.price > 20;
SELECT b.price, a.seller
FROM bids b
JOIN auctions a ON a.id = b.auction AND overlap(b.ts, 5, a.ts, 8)
WHERE b.price > 20;

-- inner3 comma
select p.name, a.id, b.price
from persons [range 20 sec] p, auctions [range 10 s] a, bids [range 4s] b
where p.id = a.seller and a.id = b.auction;
SELECT p.name, a.id, b.price
FROM persons p, auctions a, bids b
WHERE p.id = a.seller AND a.id = b.auction AND overlap(p.ts, 20, a.ts, 10, b.ts, 4);

-- theta
SELECT a.id, b.auction
FROM auctions [RANGE 2 SECONDS] a, bids [RANGE 1 SECONDS] b
WHERE a.reserve < b.price AND a.category IS NOT DISTINCT FROM b.bidder;
SELECT a.id, b.auction
FROM auctions a, bids b
WHERE a.reserve < b.price AND a.category IS NOT DISTINCT FROM b.bidder AND overlap(a.ts, 2, b.ts, 1);

-- band
SELECT a.id, b.price
FROM auctions [RANGE 6 SECONDS] a
JOIN bids [RANGE 6 SECONDS] b ON b.price BETWEEN a.reserve - 3 AND a.reserve + 3;
SELECT a.id, b.price
FROM auctions a
JOIN bids b ON b.price BETWEEN a.reserve - 3 AND a.reserve + 3 AND overlap(a.ts, 6, b.ts, 6);

-- range and now
SELECT a.id, b.price FROM auctions [RANGE 7 SECONDS] a JOIN bids [NOW] b ON b.auction = a.id;
SELECT a.id, b.price FROM auctions a JOIN bids b ON b.auction = a.id AND alive(a.ts, 7, b.ts);

-- struct
SELECT p.address.city AS city, a.id
FROM persons [RANGE 5 SECONDS] p
JOIN auctions [RANGE 5 SECONDS] a ON p.address.zip = a.category;
SELECT p.address.city, a.id
FROM persons p
JOIN auctions a ON p.address.zip = a.category AND overlap(p.ts, 5, a.ts, 5);

-- array
SELECT p.tags[0] AS t0, p.tags[1], b.price
FROM persons [RANGE 5 SECONDS] p
JOIN bids [RANGE 2 SECONDS] b ON b.bidder = p.id
WHERE p.tags[0] = 'a' AND p.tags[2] IS NULL;
SELECT p.tags[1], p.tags[2], b.price
FROM persons p
JOIN bids b ON b.bidder = p.id AND overlap(p.ts, 5, b.ts, 2)
WHERE p.tags[1] = 'a' AND p.tags[3] IS NULL;

-- case
SELECT CASE WHEN b.price > 50 THEN 'dear' WHEN b.price > 20 THEN 'fair' ELSE 'cheap' END AS kind, b.channel LIKE
    '%p%' AS pp, COALESCE(a.category, -1) AS cat
FROM bids [RANGE 2 SECONDS] b
JOIN auctions [RANGE 2 SECONDS] a ON a.id = b.auction
WHERE NOT (b.channel = 'tv') OR a.category IN (1, 2);
SELECT CASE WHEN b.price > 50 THEN 'dear' WHEN b.price > 20 THEN 'fair' ELSE 'cheap' END, b.channel LIKE '%p%',
    coalesce(a.category, -1)
FROM bids b
JOIN auctions a ON a.id = b.auction AND overlap(b.ts, 2, a.ts, 2)
WHERE NOT (b.channel = 'tv') OR a.category IN (1, 2);

-- self join
SELECT x.price AS p1, y.price AS p2
FROM bids [RANGE 1 SECONDS] x
JOIN bids [RANGE 1 SECONDS] y ON x.auction = y.auction AND x.price < y.price;
SELECT x.price, y.price
FROM bids x
JOIN bids y ON x.auction = y.auction AND x.price < y.price AND overlap(x.ts, 1, y.ts, 1);
